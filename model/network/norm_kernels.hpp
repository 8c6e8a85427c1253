// The loops of batch norm over channels-last floats: rows of `channels` values each, [begin, end) of them.
// Free of torch. A relu after the norm, and a sum before the relu, are done on the way: each saves a pass
// over memory.
#pragma once

#include <cstdint>

namespace sluice {

// What a row becomes: x * scale + shift, by channel.
struct Line {
  const float* scale;
  const float* shift;
};

struct Rows {
  const float* images = nullptr;
  const float* gradient = nullptr;
  std::int64_t channels = 0;
  std::int64_t begin = 0, end = 0;
};

// Adds the sums of (x - pivot) and of its square to sums[2 * channels]. The pivot keeps the squares small.
// `partial` is room for 2 * channels values, here and below.
void add_moments(const Rows& rows, const float* pivot, double* sums, float* partial);

// max(line(x), 0), and max(line(x) + other, 0). What is not a number stays so.
void normalise_rows(const Rows& rows, const Line& line, float* out);
void normalise_rows(const Rows& rows, const Line& line, const float* other, float* out);

// What the relu lets through of the gradient: judged by its input, line(x), or by its output.
struct Relu {
  const Line* line = nullptr;
  const float* output = nullptr;  // then what is let through is written to `passed`
  float* passed = nullptr;
};

// Adds the sums of the gradient, and of the gradient times the distance from the mean, to sums[2 * channels].
void add_gradients(const Rows& rows, const float* mean, const Relu& relu, double* sums, float* partial);

struct Slopes {
  const float* scale;      // weight / deviation
  const float* average;    // of the gradient
  const float* mean;       // of the images
  const float* covariant;  // average of gradient x distance, over the variance
};

// The gradient of the images. With `line`, rows.gradient has yet to pass the relu.
void differentiate_rows(const Rows& rows, const Slopes& slopes, const Line* line, float* out);

}  // namespace sluice
