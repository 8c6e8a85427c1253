// Mutated JPEGs through the whole decode stage, see tests/fuzz/decode.cpp.
#include <doctest/doctest.h>

#include "tests/fuzz/decode.hpp"
#include "tests/support/odd_jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

void decode_mutants(int count, std::uint64_t seed) {
  const std::vector<Bytes> seeds = sound_jpegs();
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
