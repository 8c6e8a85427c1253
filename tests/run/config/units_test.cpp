#include "run/config/units.hpp"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("sizes are read with binary and decimal units") {
  const auto bytes = [](std::string_view text) {
    const auto size = parse_size(text);
    REQUIRE_MESSAGE(size, text);
    return size->bytes;
  };
  CHECK(bytes("8GiB") == 8ull << 30);
  CHECK(bytes("512MiB") == 512ull << 20);
  CHECK(bytes("100kB") == 100'000);
  CHECK(bytes("100KB") == 100'000);
  CHECK(bytes("1.5GiB") == 3ull << 29);
  CHECK(bytes(" 2 TB ") == 2'000'000'000'000ull);
  CHECK(bytes("4096") == 4096);
  CHECK(bytes("0") == 0);
  CHECK(bytes("9007199254740993") == 9007199254740993ull);  // 2^53 + 1: no double in between
}

TEST_CASE("what is not a size is refused with a hint") {
  for (const char* text :
       {"", "GiB", "8GiBs", "-1MiB", "1e300", "nan", "inf", "8 G B", "99999999TiB", "0x10"})
    CHECK_MESSAGE(!parse_size(text), text);
  const auto bare = parse_size("8G");
  REQUIRE(!bare);
  CHECK(bare.error().hint == "write GiB (1024s) or GB (1000s)");
}

TEST_CASE("sizes are printed so that they read back equal") {
  CHECK(size_text({3ull << 29}) == "1536MiB");
  CHECK(size_text({1000}) == "1000B");
  CHECK(size_text({0}) == "0B");
  for (const std::uint64_t bytes : {1ull, 1023ull, 1024ull, 1ull << 40, (1ull << 40) + 1, 123456789012345ull})
    CHECK(parse_size(size_text({bytes}))->bytes == bytes);
}
