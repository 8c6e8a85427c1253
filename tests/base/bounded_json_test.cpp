#include "base/bounded_json.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

std::string nested(int depth) {
  const auto count = static_cast<std::size_t>(depth - 1);
  return "{\"a\":" + std::string(count, '[') + std::string(count, ']') + "}";
}

}  // namespace

TEST_CASE("bounded JSON: objects up to 64 deep and of a million values, and nothing else") {
  CHECK(parse_object("{\"a\":[1,{\"b\":null}]}").at("a")[0] == 1);
  for (const char* other : {"", "{", "[1]", "1", "null", "{} x", "{\"a\":\"\xff\"}"})
    CHECK(parse_object(other).is_discarded());
  CHECK(parse_object(nested(64)).is_object());
  CHECK(parse_object(nested(65)).is_discarded());
  CHECK(parse_object(nested(400'000)).is_discarded());
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  CHECK(parse_object(many + "]}").is_discarded());
}
