// Mutated JPEGs through the whole decode stage, see tests/fuzz/decode.cpp.
#include <doctest/doctest.h>

#include "tests/fuzz/decode.hpp"
#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

std::vector<Bytes> corpus() {
  std::vector<Bytes> all;
  for (const int components : {1, 3, 4})
    for (const bool progressive : {false, true})
      for (const int sampling : {1, 2}) {
        JpegRecipe r;
        r.size = {61 + 8 * components, 47};
        r.components = components;
        r.progressive = progressive;
        r.h = r.v = components == 3 ? sampling : 1;
        r.restart = sampling == 2 ? 4 : 0;
        r.separate_scans = !progressive && sampling == 2 && components == 3;
        all.push_back(make_jpeg(r));
      }
  for (const int sampling : {1, 2})  // one scan without restarts: what nodes/huffman reads
    for (const int quality : {60, 100}) {
      const bool own_codes = quality == 100;
      all.push_back(make_jpeg({.size = {93, 70},
                               .h = sampling,
                               .v = sampling,
                               .quality = quality,
                               .noise = own_codes,
                               .optimised = own_codes}));
    }
  return all;
}

// A few bytes changed, removed or doubled; in the headers as often as in the data.
Bytes mutate(Bytes file, Random& random) {
  for (std::uint32_t n = 1 + random.below(4); n > 0 && file.size() > 8; --n) {
    const auto size = static_cast<std::uint32_t>(file.size());
    const std::uint32_t at = random.below(random.below(2) ? std::min(size, 700u) : size);
    switch (random.below(5)) {
      case 0:
        file[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
        break;
      case 1:
        file[at] = static_cast<std::uint8_t>(random.bits());
        break;
      case 2:
        file[at] = random.below(2) ? 0xFF : 0x00;
        break;
      case 3:
        file.erase(file.begin() + at, file.begin() + std::min(size, at + 1 + random.below(30)));
        break;
      default:
        file.insert(file.begin() + at, file.begin() + at / 2,
                    file.begin() + at / 2 + std::min(20u, size - at / 2));
        break;
    }
  }
  return file;
}

void decode_mutants(int count, std::uint64_t seed) {
  const std::vector<Bytes> seeds = corpus();
  int decoded = 0, refused = 0;
  for (int i = 0; i < count; ++i) {
    Random random(seed, 0, static_cast<std::uint64_t>(i), Purpose::synth);
    const Bytes file = mutate(seeds[random.below(static_cast<std::uint32_t>(seeds.size()))], random);
    const DecodeOutcome outcome = decode_input(file);
    ++(std::holds_alternative<Done>(outcome) ? decoded : refused);
  }
  MESSAGE(count << " mutants: " << decoded << " decoded, " << refused << " refused");
  CHECK(decoded > count / 50);
  CHECK(refused > count / 10);
}

}  // namespace

TEST_CASE("fuzz: a thousand mutated JPEGs") { decode_mutants(1000, 1); }

TEST_SUITE("long") {
  TEST_CASE("fuzz: a hundred thousand mutated JPEGs") { decode_mutants(100'000, 2); }
}
