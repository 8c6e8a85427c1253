// The loops of the resampler, plain and for AVX2, with the same results bit for bit. An exact weight has 22
// bits; it is kept in two halves of 11, so that products with 8-bit pixels can be summed in pairs of 16-bit
// numbers. A brief weight has 14 and no second half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

constexpr int weight_bits = 22, half_bits = 11, brief_bits = 14;

enum class Weights { exact, brief };

// The weights of two neighbouring inputs.
struct WeightPair {
  std::int16_t high[2], low[2];
};

// The weights of one axis: output i is the sum over inputs from first[i] on, two for each of the `pairs`
// pairs from pair[i * pairs]. Where fewer inputs count, the weights are zero.
struct Taps {
  std::vector<std::int32_t> first, count;
  std::vector<WeightPair> pair;
  int pairs = 0;
  [[nodiscard]] const WeightPair* of(std::size_t output) const {
    return &pair[output * static_cast<std::size_t>(pairs)];
  }
};

struct Kernels {
  Weights weights;
  // One row across, or two at once with `next`. Reads up to 16 bytes past the last pixel that counts; weights
  // come in an even number of pairs.
  void (*across)(const std::uint8_t* row, const std::uint8_t* next, const Taps& taps, std::size_t outputs,
                 std::uint8_t* out, std::uint8_t* out_next);
  // The weighted sum of `count` lines of `bytes` bytes.
  void (*down)(const std::uint8_t* const* lines, const WeightPair* weights, int count, std::size_t bytes,
               std::uint8_t* out);
};

[[nodiscard]] const Kernels& plain_kernels(Weights weights);
[[nodiscard]] const Kernels* avx2_kernels(Weights weights);  // none where the processor does not know them
[[nodiscard]] const Kernels& best_kernels(Weights weights);

}  // namespace sluice
