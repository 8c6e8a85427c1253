#include "nodes/jpeg/resample_kernels.hpp"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr std::int32_t half = 1 << (weight_bits - 1);

template <Weights kind>
std::uint8_t to_byte(std::int32_t high, std::int32_t low) {
  const std::int32_t value = kind == Weights::exact ? (high * (1 << half_bits) + low + half) >> weight_bits
                                                    : (high + (1 << (brief_bits - 1))) >> brief_bits;
  return static_cast<std::uint8_t>(std::min(value, 255));
}

template <Weights kind>
void row_across(const std::uint8_t* row, const Taps& taps, std::size_t outputs, std::uint8_t* out) {
  for (std::size_t i = 0; i < outputs; ++i, out += 3) {
    const WeightPair* weights = taps.of(i);
    const std::uint8_t* pixel = row + 3 * static_cast<std::size_t>(taps.first[i]);
    std::array<std::int32_t, 3> high{}, low{};
    for (int k = 0; k < taps.count[i]; ++k, pixel += 3) {
      const WeightPair& w = weights[k / 2];
      for (std::size_t c = 0; c < 3; ++c) {
        high[c] += pixel[c] * w.high[k % 2];
        low[c] += pixel[c] * w.low[k % 2];
      }
    }
    for (std::size_t c = 0; c < 3; ++c) out[c] = to_byte<kind>(high[c], low[c]);
  }
}

template <Weights kind>
void across(const std::uint8_t* row, const std::uint8_t* next, const Taps& taps, std::size_t outputs,
            std::uint8_t* out, std::uint8_t* out_next) {
  row_across<kind>(row, taps, outputs, out);
  if (next) row_across<kind>(next, taps, outputs, out_next);
}

template <Weights kind>
void down(const std::uint8_t* const* lines, const WeightPair* weights, int count, std::size_t bytes,
          std::uint8_t* out) {
  constexpr std::size_t block = 64;  // sums stay near
  for (std::size_t start = 0; start < bytes; start += block) {
    std::array<std::int32_t, block> high{}, low{};
    const std::size_t length = std::min(block, bytes - start);
    for (int k = 0; k < count; ++k) {
      const std::uint8_t* line = lines[k] + start;
      const WeightPair& w = weights[k / 2];
      for (std::size_t i = 0; i < length; ++i) {
        high[i] += line[i] * w.high[k % 2];
        low[i] += line[i] * w.low[k % 2];
      }
    }
    for (std::size_t i = 0; i < length; ++i) out[start + i] = to_byte<kind>(high[i], low[i]);
  }
}

}  // namespace

const Kernels& plain_kernels(Weights weights) {
  static constexpr Kernels exact{Weights::exact, across<Weights::exact>, down<Weights::exact>},
      brief{Weights::brief, across<Weights::brief>, down<Weights::brief>};
  return weights == Weights::exact ? exact : brief;
}

const Kernels& best_kernels(Weights weights) {
  const Kernels* fast = avx2_kernels(weights);
  return fast ? *fast : plain_kernels(weights);
}

}  // namespace sluice
