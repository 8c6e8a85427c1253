// Mutated configurations through all that reads one, see tests/fuzz/config.cpp.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "run/config/config.hpp"
#include "tests/fuzz/config.hpp"

using namespace sluice;

namespace {

std::vector<std::string> corpus() {
  Config config;
  config.data.train = "train";
  config.data.val = "val";
  config.data.exclude = {"a/b.JPEG", "c/*"};
  return {to_toml(config),
          "[data]\ntrain = 't'\nval = \"\"\"v\"\"\"\nimage_size = 0x40\n[budget]\nram = \"64MiB\"\n"
          "[augment]\nscale = [0.08, 1]\n\x1etrain.batch=64\x1elog.name = \"a\"\x1e"
          "data.exclude=[\"a/b\"]",
          "data.train = \"a\"\ndata = {val = \"b\"}\n",
          "name = \"m\"\ncpus = 4\nmemory = \"62GiB\"\ngpus = 1\ngpu_memory = \"24GiB\"\ngpu_name = \"g\"\n"};
}

constexpr std::array<std::string_view, 40> pieces{"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "[[a]]\n",
                                                  "a.a.a.a.a.a",
                                                  ".",
                                                  "=",
                                                  "\n",
                                                  "\"",
                                                  "'",
                                                  "\"\"\"",
                                                  "'''",
                                                  "#",
                                                  ",",
                                                  "\\u0000",
                                                  "\\",
                                                  "\x1b[2J",
                                                  "\xff",
                                                  "\u009b",
                                                  "\u202e",
                                                  "inf",
                                                  "nan",
                                                  "-1",
                                                  "1e999",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "\"99999999999GiB\"",
                                                  "\"auto\"",
                                                  "true",
                                                  "1979-05-27T07:32:00Z",
                                                  "\x1e",
                                                  "train.batch=",
                                                  "[data]\n",
                                                  "[train]\n",
                                                  "batch = ",
                                                  "\\U0010FFFF",
                                                  "\\uD800",
                                                  "0x7fffffffffffffff",
                                                  std::string_view("\0", 1)};

std::string mutate(std::string text, Random& random) {
  for (std::uint32_t n = 1 + random.below(3); n > 0 && !text.empty(); --n) {
    std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
    const std::size_t length = 1 + random.below(30);
    switch (random.below(8)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 1:
        text[at] = static_cast<char>(random.bits());
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at / 2, text.substr(at, length));
        break;
      case 4:
      case 5:  // another number
        at = text.find_first_of("0123456789", at);
        if (at != std::string::npos) text[at] = static_cast<char>('0' + random.below(10));
        break;
      case 6:
        text.insert(at, pieces[random.below(pieces.size())]);
        break;
      default: {  // one thing over and over: what nests
        const std::string_view piece = pieces[random.below(16)];
        std::string many;
        for (std::uint32_t i = random.below(300); i > 0; --i) many += piece;
        text.insert(at, many);
      }
    }
  }
  return text;
}

bool load(const std::string& text) {
  return test::config_input({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void load_mutants(int count, std::uint64_t seed) {
  const std::vector<std::string> seeds = corpus();
  for (std::size_t i = 0; i < 2; ++i) REQUIRE(load(seeds[i]));
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    Random random(seed, 0, static_cast<std::uint64_t>(i), Purpose::synth);
    const std::string text = mutate(seeds[random.below(static_cast<std::uint32_t>(seeds.size()))], random);
    taken += load(text);
  }
  MESSAGE(count << " mutants: " << taken << " taken, " << count - taken << " refused");
  CHECK(taken > count / 50);
  CHECK(count - taken > count / 4);
}

}  // namespace

TEST_CASE("config fuzz: two thousand mutated configurations") { load_mutants(2000, 1); }

TEST_SUITE("long") {
#ifdef __SANITIZE_ADDRESS__
  constexpr int many = 20'000;  // ten times as slow
#else
  constexpr int many = 200'000;
#endif
  TEST_CASE("config fuzz: many mutated configurations") { load_mutants(many, 2); }
}
