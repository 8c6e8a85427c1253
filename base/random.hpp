// Random numbers that depend on nothing but their key: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011). The same (seed, epoch, index, purpose) gives the same stream on any
// thread, rank or resume; no state is shared.
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

// What a stream is used for; each purpose has a stream of its own, so that adding one never shifts another.
// The values are part of what makes two runs equal: append, never renumber.
enum class Purpose : std::uint32_t {
  order = 1,
  crop = 2,
  flip = 3,
  replace = 4,
  mix = 5,
  augment = 6,
  erase = 7,
  synth = 8
};

// One block of the cipher: 128 bits of counter and 64 bits of key in, 128 random bits out.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

class Random {
 public:
  // epoch below 2^32, purpose below 2^8; index uses all 64 bits. A stream repeats after 2^26 numbers.
  Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, Purpose purpose);

  std::uint32_t bits();                      // 32 uniform bits
  double uniform();                          // [0, 1), 53 bits
  double uniform(double low, double high);   // [low, high)
  std::uint32_t below(std::uint32_t bound);  // [0, bound), unbiased; bound > 0

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace sluice
