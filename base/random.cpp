#include "base/random.hpp"

namespace sluice {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

// counter[0] = purpose in bits 16 to 23 and the block's number around it, its low 16 bits below and its high
// 8 bits above; the rest is the key of the sample.
Random::Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, Purpose purpose)
    : counter_{static_cast<std::uint32_t>(purpose) << 16, static_cast<std::uint32_t>(epoch),
               static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::uint32_t Random::bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    counter_[0] =
        (counter_[0] & 0xFFFF) != 0xFFFF ? counter_[0] + 1 : (counter_[0] & 0xFFFF0000u) + (1u << 24);
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double Random::uniform() {
  const std::uint64_t high = bits() >> 5, low = bits() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1.0p-53;
}

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

std::uint32_t Random::below(std::uint32_t bound) {
  // Lemire's multiply-and-reject: no modulo bias.
  std::uint64_t product = std::uint64_t{bits()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t least = (0u - bound) % bound;
    while (static_cast<std::uint32_t>(product) < least) product = std::uint64_t{bits()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace sluice
