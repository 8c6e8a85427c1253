#include "nodes/resample.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice {
namespace {

constexpr int precision = 22;
constexpr std::int32_t half = 1 << (precision - 1);

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::min(sum >> precision, 255)); }

// Grows to exactly `size`, giving the old memory back first: vector's own growth would hold both and round
// up.
template <class T>
void fit(std::vector<T>& vector, std::size_t size) {
  if (vector.capacity() < size) {
    std::vector<T>().swap(vector);
    vector.reserve(size);
  }
  vector.resize(size);
}

template <class T>
std::size_t held(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

int span_for(double reduction) { return static_cast<int>(std::ceil(std::max(reduction, 1.0))) * 2 + 1; }

struct Reach {
  int first, count;
};

// The inputs with a weight above zero at one output. Sums and comparisons are in Pillow's order: the last bit
// counts.
Reach reach(int input, double reduction, int output) {
  const double width = std::max(reduction, 1.0);
  const double center = (output + 0.5) * reduction;
  int first = std::max(static_cast<int>(center - width + 0.5), 0);
  int end = std::min(static_cast<int>(center + width + 0.5), input);
  const double inverse = 1.0 / width;
  const auto is_zero = [&](int i) { return std::abs((i - center + 0.5) * inverse) >= 1.0; };
  while (end - first > 1 && is_zero(first)) ++first;
  while (end - first > 1 && is_zero(end - 1)) --end;
  return {first, end - first};
}

void filter_across(const std::uint8_t* row, const Taps& taps, int outputs, std::uint8_t* out) {
  for (int i = 0; i < outputs; ++i, out += 3) {
    const std::size_t at = static_cast<std::size_t>(i);
    const std::uint8_t* pixel = row + 3 * static_cast<std::size_t>(taps.first[at]);
    const std::int32_t* weight = &taps.weight[at * static_cast<std::size_t>(taps.span)];
    std::int32_t red = half, green = half, blue = half;
    for (int k = 0; k < taps.count[at]; ++k, pixel += 3) {
      red += pixel[0] * weight[k];
      green += pixel[1] * weight[k];
      blue += pixel[2] * weight[k];
    }
    out[0] = to_byte(red);
    out[1] = to_byte(green);
    out[2] = to_byte(blue);
  }
}

void filter_down(const std::uint8_t* const* lines, const std::int32_t* weight, int count, std::size_t bytes,
                 std::uint8_t* out) {
  constexpr std::size_t block = 64;  // sums stay in registers
  for (std::size_t start = 0; start < bytes; start += block) {
    std::array<std::int32_t, block> sum;
    sum.fill(half);
    const std::size_t length = std::min(block, bytes - start);
    for (int k = 0; k < count; ++k) {
      const std::uint8_t* line = lines[k] + start;
      for (std::size_t i = 0; i < length; ++i) sum[i] += line[i] * weight[k];
    }
    for (std::size_t i = 0; i < length; ++i) out[start + i] = to_byte(sum[i]);
  }
}

// First and last input that outputs from .. from + outputs - 1 touch; both bounds grow with the output.
Reach touched(int input, int to, int from, int outputs) {
  const double reduction = static_cast<double>(input) / to;
  const Reach begin = reach(input, reduction, from), last = reach(input, reduction, from + outputs - 1);
  return {begin.first, last.first + last.count - begin.first};
}

}  // namespace

void plan_taps(int input, int to, int from, int outputs, Taps& taps) {
  const double reduction = static_cast<double>(input) / to;
  const double inverse = 1.0 / std::max(reduction, 1.0);
  const std::size_t size = static_cast<std::size_t>(outputs);
  taps.span = std::min(span_for(reduction), input);
  fit(taps.first, size);
  fit(taps.count, size);
  fit(taps.weight, size * static_cast<std::size_t>(taps.span));
  for (int i = 0; i < outputs; ++i) {
    const double center = (from + i + 0.5) * reduction;
    const Reach part = reach(input, reduction, from + i);
    std::int32_t* weight = &taps.weight[static_cast<std::size_t>(i) * static_cast<std::size_t>(taps.span)];
    const auto triangle = [&](int k) { return 1.0 - std::abs((k + part.first - center + 0.5) * inverse); };
    double sum = 0;
    for (int k = 0; k < part.count; ++k) sum += triangle(k);
    for (int k = 0; k < part.count; ++k)
      weight[k] = static_cast<std::int32_t>(0.5 + triangle(k) / sum * (1 << precision));
    taps.first[static_cast<std::size_t>(i)] = part.first;
    taps.count[static_cast<std::size_t>(i)] = part.count;
  }
}

Box needed(const View& view) {
  const Reach x = touched(view.region.width, view.to.width, view.window.x, view.window.width);
  const Reach y = touched(view.region.height, view.to.height, view.window.y, view.window.height);
  return {view.region.x + x.first, view.region.y + y.first, x.count, y.count};
}

std::size_t resampler_bytes(ImageSize image, int out) {
  const auto axis = [out](int input) {
    return static_cast<std::size_t>(std::min(span_for(static_cast<double>(input) / out), input));
  };
  const std::size_t across = axis(image.width), down = axis(image.height),
                    outputs = static_cast<std::size_t>(out);
  return outputs * (across + down + 4) * sizeof(std::int32_t) + down * (outputs * 3 + sizeof(void*));
}

void Resampler::start(const View& view, std::uint8_t* out, std::size_t stride) {
  plan_taps(view.region.width, view.to.width, view.window.x, view.window.width, across_);
  plan_taps(view.region.height, view.to.height, view.window.y, view.window.height, down_);
  source_ = needed(view);
  for (std::int32_t& first : across_.first) first -= source_.x - view.region.x;
  for (std::int32_t& first : down_.first) first -= source_.y - view.region.y;
  line_bytes_ = static_cast<std::size_t>(view.window.width) * 3;
  fit(ring_, static_cast<std::size_t>(down_.span) * line_bytes_);
  fit(lines_, static_cast<std::size_t>(down_.span));
  out_ = out;
  stride_ = stride;
  pushed_ = emitted_ = 0;
  rows_out_ = view.window.height;
}

void Resampler::push(const std::uint8_t* row) {
  const auto line = [&](int y) { return &ring_[static_cast<std::size_t>(y % down_.span) * line_bytes_]; };
  filter_across(row, across_, static_cast<int>(line_bytes_ / 3), line(pushed_));
  ++pushed_;
  for (; emitted_ < rows_out_; ++emitted_) {
    const std::size_t at = static_cast<std::size_t>(emitted_);
    const int first = down_.first[at], count = down_.count[at];
    if (first + count > pushed_) return;
    for (int k = 0; k < count; ++k) lines_[static_cast<std::size_t>(k)] = line(first + k);
    filter_down(lines_.data(), &down_.weight[at * static_cast<std::size_t>(down_.span)], count, line_bytes_,
                out_ + at * stride_);
  }
}

std::size_t Resampler::held_bytes() const {
  return held(across_.first) + held(across_.count) + held(across_.weight) + held(down_.first) +
         held(down_.count) + held(down_.weight) + held(ring_) + held(lines_);
}

void Resampler::release() { *this = Resampler(); }

}  // namespace sluice
