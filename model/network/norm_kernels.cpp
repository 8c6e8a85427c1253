#include "model/network/norm_kernels.hpp"

#include <algorithm>

// The compiler makes several versions of the functions marked wide, and the processor's is taken when the
// program starts. What they call must become part of them.
#define SLUICE_ROW [[gnu::always_inline]] inline
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SLUICE_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SLUICE_WIDE
#endif

namespace sluice {
namespace {

using Index = std::int64_t;

constexpr Index block = 32;  // rows whose sums are kept in single precision

SLUICE_ROW void moments_of(const float* __restrict x, const float* __restrict pivot, Index c,
                           float* __restrict sum, float* __restrict squares) {
  for (Index i = 0; i < c; ++i) {
    const float d = x[i] - pivot[i];
    sum[i] += d;
    squares[i] += d * d;
  }
}

SLUICE_ROW void rectify(const float* __restrict x, Line l, Index c, float* __restrict out) {
  const float* __restrict scale = l.scale, * __restrict shift = l.shift;
  for (Index i = 0; i < c; ++i) {
    const float y = x[i] * scale[i] + shift[i];
    out[i] = y < 0 ? 0 : y;
  }
}

SLUICE_ROW void rectify_sum(const float* __restrict x, const float* __restrict other, Line l, Index c,
                            float* __restrict out) {
  const float* __restrict scale = l.scale, * __restrict shift = l.shift;
  for (Index i = 0; i < c; ++i) {
    const float y = x[i] * scale[i] + shift[i] + other[i];
    out[i] = y < 0 ? 0 : y;
  }
}

SLUICE_ROW void add(const float* __restrict x, const float* __restrict g, const float* __restrict mean,
                    Index c, float* __restrict plain, float* __restrict weighted) {
  for (Index i = 0; i < c; ++i) {
    plain[i] += g[i];
    weighted[i] += g[i] * (x[i] - mean[i]);
  }
}

SLUICE_ROW void add_by_input(const float* __restrict x, const float* __restrict g,
                             const float* __restrict mean, Line l, Index c, float* __restrict plain,
                             float* __restrict weighted) {
  const float* __restrict scale = l.scale, * __restrict shift = l.shift;
  for (Index i = 0; i < c; ++i) {
    const float all = g[i], passed = x[i] * scale[i] + shift[i] <= 0 ? 0 : all;
    plain[i] += passed;
    weighted[i] += passed * (x[i] - mean[i]);
  }
}

SLUICE_ROW void add_by_output(const float* __restrict x, const float* __restrict g,
                              const float* __restrict mean, const float* __restrict y, Index c,
                              float* __restrict to, float* __restrict plain, float* __restrict weighted) {
  for (Index i = 0; i < c; ++i) {
    const float all = g[i], passed = y[i] <= 0 ? 0 : all;
    to[i] = passed;
    plain[i] += passed;
    weighted[i] += passed * (x[i] - mean[i]);
  }
}

SLUICE_ROW void differentiate(const float* __restrict x, const float* __restrict g, Slopes s, Index c,
                              float* __restrict out) {
  const float* __restrict slope_scale = s.scale, * __restrict slope_average = s.average, * __restrict slope_mean = s.mean, * __restrict slope_covariant = s.covariant;
  for (Index i = 0; i < c; ++i)
    out[i] = slope_scale[i] * (g[i] - slope_average[i] - (x[i] - slope_mean[i]) * slope_covariant[i]);
}

SLUICE_ROW void differentiate_by_input(const float* __restrict x, const float* __restrict g, Slopes s, Line l,
                                       Index c, float* __restrict out) {
  const float* __restrict slope_scale = s.scale, * __restrict slope_average = s.average, * __restrict slope_mean = s.mean, * __restrict slope_covariant = s.covariant;
  const float* __restrict scale = l.scale, * __restrict shift = l.shift;
  for (Index i = 0; i < c; ++i) {
    const float all = g[i], passed = x[i] * scale[i] + shift[i] <= 0 ? 0 : all;
    out[i] = slope_scale[i] * (passed - slope_average[i] - (x[i] - slope_mean[i]) * slope_covariant[i]);
  }
}

// Calls `row` for each row's offset; every so often its single-precision sums move on to the double ones.
template <class Row>
SLUICE_ROW void in_blocks(const Rows& rows, double* sums, float* partial, const Row& row) {
  const Index width = 2 * rows.channels;
  for (Index first = rows.begin; first < rows.end; first += block) {
    std::fill(partial, partial + width, 0.0f);
    for (Index r = first; r < std::min(first + block, rows.end); ++r) row(r * rows.channels);
    for (Index i = 0; i < width; ++i) sums[i] += static_cast<double>(partial[i]);
  }
}

}  // namespace

SLUICE_WIDE void add_moments(const Rows& rows, const float* pivot, double* sums, float* partial) {
  in_blocks(
      rows, sums, partial, [&](Index at) __attribute__((always_inline)) {
        moments_of(rows.images + at, pivot, rows.channels, partial, partial + rows.channels);
      });
}

SLUICE_WIDE void normalise_rows(const Rows& rows, const Line& line, float* out) {
  for (Index r = rows.begin; r < rows.end; ++r)
    rectify(rows.images + r * rows.channels, line, rows.channels, out + r * rows.channels);
}

SLUICE_WIDE void normalise_rows(const Rows& rows, const Line& line, const float* other, float* out) {
  for (Index r = rows.begin; r < rows.end; ++r) {
    const Index at = r * rows.channels;
    rectify_sum(rows.images + at, other + at, line, rows.channels, out + at);
  }
}

SLUICE_WIDE void add_gradients(const Rows& rows, const float* mean, const Relu& relu, double* sums,
                               float* partial) {
  const Index c = rows.channels;
  in_blocks(
      rows, sums, partial, [&](Index at) __attribute__((always_inline)) {
        const float *x = rows.images + at, *g = rows.gradient + at;
        if (relu.output)
          add_by_output(x, g, mean, relu.output + at, c, relu.passed + at, partial, partial + c);
        else if (relu.line)
          add_by_input(x, g, mean, *relu.line, c, partial, partial + c);
        else
          add(x, g, mean, c, partial, partial + c);
      });
}

SLUICE_WIDE void differentiate_rows(const Rows& rows, const Slopes& slopes, const Line* line, float* out) {
  for (Index r = rows.begin; r < rows.end; ++r) {
    const Index at = r * rows.channels;
    if (line)
      differentiate_by_input(rows.images + at, rows.gradient + at, slopes, *line, rows.channels, out + at);
    else
      differentiate(rows.images + at, rows.gradient + at, slopes, rows.channels, out + at);
  }
}

}  // namespace sluice
