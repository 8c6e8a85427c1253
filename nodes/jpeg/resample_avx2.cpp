// Two rows at once across, one in each half of a register; 32 bytes at once down.
#include "nodes/jpeg/resample_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define SLUICE_AVX2 __attribute__((target("avx2")))

namespace sluice {
namespace {

// Two weights as the 32 bits that madd multiplies with two neighbouring pixels.
SLUICE_AVX2 inline __m256i broadcast(const std::int16_t (&two)[2]) {
  std::int32_t bits;
  std::memcpy(&bits, two, sizeof bits);
  return _mm256_set1_epi32(bits);
}

template <Weights kind>
SLUICE_AVX2 inline __m256i joined(__m256i high, __m256i low) {
  if (kind == Weights::brief)
    return _mm256_srai_epi32(_mm256_add_epi32(high, _mm256_set1_epi32(1 << (brief_bits - 1))), brief_bits);
  const __m256i half = _mm256_set1_epi32(1 << (weight_bits - 1));
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, half_bits), _mm256_add_epi32(low, half)),
                           weight_bits);
}

SLUICE_AVX2 inline __m256i load_rows(const std::uint8_t* row, const std::uint8_t* next) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(next)), 1);
}

template <Weights kind>
SLUICE_AVX2 void across(const std::uint8_t* row, const std::uint8_t* next, const Taps& taps,
                        std::size_t outputs, std::uint8_t* out, std::uint8_t* out_next) {
  if (!next) next = row, out_next = out;
  // From four RGB pixels, the first two (the last two) as 16-bit pairs: red, green, blue.
  const __m256i first_two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i last_two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  for (std::size_t i = 0; i < outputs; ++i) {
    const std::size_t at = 3 * static_cast<std::size_t>(taps.first[i]);
    const WeightPair* w = taps.of(i);
    const WeightPair* const end = w + (taps.count[i] + 3) / 4 * 2;
    __m256i high = _mm256_setzero_si256(), low = high;
    for (const std::uint8_t *a = row + at, *b = next + at; w != end; w += 2, a += 12, b += 12) {
      const __m256i pixels = load_rows(a, b);
      const __m256i one = _mm256_shuffle_epi8(pixels, first_two), two = _mm256_shuffle_epi8(pixels, last_two);
      high = _mm256_add_epi32(high, _mm256_add_epi32(_mm256_madd_epi16(one, broadcast(w[0].high)),
                                                     _mm256_madd_epi16(two, broadcast(w[1].high))));
      if (kind == Weights::exact)
        low = _mm256_add_epi32(low, _mm256_add_epi32(_mm256_madd_epi16(one, broadcast(w[0].low)),
                                                     _mm256_madd_epi16(two, broadcast(w[1].low))));
    }
    const __m256i sums = joined<kind>(high, low);
    const __m256i words = _mm256_packus_epi32(sums, sums);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const auto a = static_cast<std::uint32_t>(_mm256_extract_epi32(bytes, 0));
    const auto b = static_cast<std::uint32_t>(_mm256_extract_epi32(bytes, 4));
    std::memcpy(out + 3 * i, &a, 3);
    std::memcpy(out_next + 3 * i, &b, 3);
  }
}

SLUICE_AVX2 inline __m256i load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

template <Weights kind>
SLUICE_AVX2 void down_32(const std::uint8_t* const* lines, const WeightPair* weights, int count,
                         std::size_t start, std::uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i high[4] = {zero, zero, zero, zero}, low[4] = {zero, zero, zero, zero};
  for (int k = 0; k < count; k += 2) {
    const __m256i a = load(lines[k] + start), b = k + 1 < count ? load(lines[k + 1] + start) : zero;
    const __m256i front = _mm256_unpacklo_epi8(a, b), back = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(front, zero), _mm256_unpackhi_epi8(front, zero),
                              _mm256_unpacklo_epi8(back, zero), _mm256_unpackhi_epi8(back, zero)};
    // Bytes a0 b0 a1 b1 became words a0 b0 a1 b1: each 32 bits hold the same byte of both lines.
    const __m256i by_high = broadcast(weights[k / 2].high), by_low = broadcast(weights[k / 2].low);
    for (int i = 0; i < 4; ++i) {
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pairs[i], by_high));
      if (kind == Weights::exact) low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pairs[i], by_low));
    }
  }
  const __m256i front = _mm256_packus_epi32(joined<kind>(high[0], low[0]), joined<kind>(high[1], low[1]));
  const __m256i back = _mm256_packus_epi32(joined<kind>(high[2], low[2]), joined<kind>(high[3], low[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + start), _mm256_packus_epi16(front, back));
}

template <Weights kind>
SLUICE_AVX2 void down(const std::uint8_t* const* lines, const WeightPair* weights, int count,
                      std::size_t bytes, std::uint8_t* out) {
  if (bytes < 32) return plain_kernels(kind).down(lines, weights, count, bytes, out);
  for (std::size_t start = 0; start + 32 <= bytes; start += 32)
    down_32<kind>(lines, weights, count, start, out);
  if (bytes % 32 != 0) down_32<kind>(lines, weights, count, bytes - 32, out);  // some bytes again
}

}  // namespace

const Kernels* avx2_kernels(Weights weights) {
  static constexpr Kernels exact{Weights::exact, across<Weights::exact>, down<Weights::exact>},
      brief{Weights::brief, across<Weights::brief>, down<Weights::brief>};
  if (!__builtin_cpu_supports("avx2")) return nullptr;
  return weights == Weights::exact ? &exact : &brief;
}

}  // namespace sluice

#else
namespace sluice {
const Kernels* avx2_kernels(Weights) { return nullptr; }
}  // namespace sluice
#endif
