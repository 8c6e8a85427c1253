#include "base/bounded_json.hpp"

namespace sluice {
namespace {

using nlohmann::json;

// Walks over the text and makes nothing of it. (A callback of json::parse() could count as well, but with one
// it takes the square of the number of values.)
struct Counter : json::json_sax_t {
  std::size_t values = 0;
  int depth = 0;

  bool count() { return ++values <= 1'000'000; }
  bool enter() { return ++depth <= 64 && count(); }
  bool leave() { return --depth >= 0; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return count(); }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }
};

}  // namespace

json parse_object(std::string_view text) {
  Counter counter;
  if (!json::sax_parse(text, &counter)) return json(json::value_t::discarded);
  json object = json::parse(text, nullptr, false);
  return object.is_object() ? object : json(json::value_t::discarded);
}

}  // namespace sluice
