// A random order of 0..n-1 that is computed, not stored: a Feistel network over the next even power of two,
// walked until it lands inside. Any place of any epoch's order is known at once, so a resume costs nothing
// and a million images take no memory.
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);
  [[nodiscard]] std::uint64_t operator()(std::uint64_t at) const;  // at < size

 private:
  static constexpr int rounds = 8;
  std::uint64_t size_;
  unsigned half_bits_;
  std::array<std::uint64_t, rounds> keys_;
};

}  // namespace sluice
