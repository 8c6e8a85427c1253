#include "model/header_json.hpp"

namespace sluice {
namespace {

using nlohmann::json;

struct TooMuch {};

}  // namespace

json parse_header(std::string_view text) try {
  constexpr std::size_t most_values = 1'000'000;
  constexpr int deepest = 64;
  std::size_t values = 0;
  json header = json::parse(
      text,
      [&](int depth, json::parse_event_t, const json&) {
        if (depth > deepest || ++values > most_values) throw TooMuch{};
        return true;
      },
      false);
  return header.is_object() ? header : json(json::value_t::discarded);
} catch (const TooMuch&) {
  return json(json::value_t::discarded);
}

}  // namespace sluice
