#include "nodes/jpeg/resample.hpp"

#include <algorithm>
#include <cmath>

#include "base/reuse.hpp"

namespace sluice {
namespace {

int span_for(double reduction) { return static_cast<int>(std::ceil(std::max(reduction, 1.0))) * 2 + 1; }

// In an even number, as the kernels want them.
int pairs_for(int span) { return (span + 3) / 4 * 2; }

struct Reach {
  int first, count;
};

double reduction_of(const SampledAxis& axis) { return axis.length / axis.to; }
double center_of(const SampledAxis& axis, int output) {
  return axis.offset + (output + 0.5) * reduction_of(axis);
}

// The inputs with a weight above zero at one output. Sums and comparisons are in Pillow's order: the last bit
// counts.
Reach reach(const SampledAxis& axis, int output) {
  const double width = std::max(reduction_of(axis), 1.0);
  const double center = center_of(axis, output);
  int first = std::max(static_cast<int>(center - width + 0.5), 0);
  int end = std::min(static_cast<int>(center + width + 0.5), axis.inputs);
  const double inverse = 1.0 / width;
  const auto is_zero = [&](int i) { return std::abs((i - center + 0.5) * inverse) >= 1.0; };
  while (end - first > 1 && is_zero(first)) ++first;
  while (end - first > 1 && is_zero(end - 1)) --end;
  return {first, end - first};
}

// First and last input that outputs from .. from + outputs - 1 touch; both bounds grow with the output.
Reach touched(const SampledAxis& axis, int from, int outputs) {
  const Reach begin = reach(axis, from), last = reach(axis, from + outputs - 1);
  return {begin.first, last.first + last.count - begin.first};
}

// Of a region that begins at `begin`, in an image of `size` pixels before it was reduced.
struct Placed {
  SampledAxis axis;
  int first;  // reduced pixel that the axis begins with
};
Placed placed(int begin, int length, int size, int to, int reduce) {
  const int first = begin / reduce, end = std::min(begin + length + reduce - 1, size + reduce - 1) / reduce;
  return {{static_cast<double>(begin - first * reduce) / reduce, static_cast<double>(length) / reduce,
           end - first, to},
          first};
}
Placed placed_across(const View& view, ImageSize image, int reduce) {
  return placed(view.region.x, view.region.width, image.width, view.to.width, reduce);
}
Placed placed_down(const View& view, ImageSize image, int reduce) {
  return placed(view.region.y, view.region.height, image.height, view.to.height, reduce);
}

}  // namespace

void plan_taps(const SampledAxis& axis, int from, int outputs, bool mirrored, Weights weights, Taps& taps) {
  const double inverse = 1.0 / std::max(reduction_of(axis), 1.0);
  const int bits = weights == Weights::exact ? weight_bits : brief_bits;
  const int low_bits = weights == Weights::exact ? half_bits : 0;
  const std::size_t size = static_cast<std::size_t>(outputs);
  taps.pairs = pairs_for(std::min(span_for(reduction_of(axis)), axis.inputs));
  fit(taps.first, size);
  fit(taps.count, size);
  fit(taps.pair, size * static_cast<std::size_t>(taps.pairs));
  for (int i = 0; i < outputs; ++i) {
    const double center = center_of(axis, from + i);
    const Reach part = reach(axis, from + i);
    const std::size_t at = static_cast<std::size_t>(mirrored ? outputs - 1 - i : i);
    WeightPair* pairs = &taps.pair[at * static_cast<std::size_t>(taps.pairs)];
    std::fill_n(pairs, taps.pairs, WeightPair{});
    const auto triangle = [&](int k) { return 1.0 - std::abs((k + part.first - center + 0.5) * inverse); };
    double sum = 0;
    for (int k = 0; k < part.count; ++k) sum += triangle(k);
    for (int k = 0; k < part.count; ++k) {
      const auto weight = static_cast<std::int32_t>(0.5 + triangle(k) / sum * (1 << bits));
      pairs[k / 2].high[k % 2] = static_cast<std::int16_t>(weight >> low_bits);
      pairs[k / 2].low[k % 2] = static_cast<std::int16_t>(weight & ((1 << low_bits) - 1));
    }
    taps.first[at] = part.first;
    taps.count[at] = part.count;
  }
}

Box needed(const View& view, ImageSize image, int reduce) {
  const Placed across = placed_across(view, image, reduce), down = placed_down(view, image, reduce);
  const Reach x = touched(across.axis, view.window.x, view.window.width);
  const Reach y = touched(down.axis, view.window.y, view.window.height);
  return {across.first + x.first, down.first + y.first, x.count, y.count};
}

std::size_t resampler_bytes(ImageSize image, int out) {
  const auto axis = [out](int input) {
    return static_cast<std::size_t>(std::min(span_for(static_cast<double>(input) / out), input));
  };
  const auto pairs = [](std::size_t span) {
    return static_cast<std::size_t>(pairs_for(static_cast<int>(span)));
  };
  const std::size_t across = axis(image.width), down = axis(image.height),
                    outputs = static_cast<std::size_t>(out);
  return outputs * ((pairs(across) + pairs(down)) * sizeof(WeightPair) + 4 * sizeof(std::int32_t)) +
         (down + 1) * (outputs * 3 + sizeof(void*));
}

void Resampler::start(const View& view, ImageSize image, int reduce, std::uint8_t* out, std::size_t stride,
                      const Kernels& kernels) {
  kernels_ = &kernels;
  const Placed across = placed_across(view, image, reduce), down = placed_down(view, image, reduce);
  plan_taps(across.axis, view.window.x, view.window.width, view.mirrored, kernels.weights, across_);
  plan_taps(down.axis, view.window.y, view.window.height, false, kernels.weights, down_);
  source_ = needed(view, image, reduce);
  int span = 1;
  for (const std::int32_t count : down_.count) span = std::max(span, count);
  for (std::int32_t& first : across_.first) first -= source_.x - across.first;
  for (std::int32_t& first : down_.first) first -= source_.y - down.first;
  line_bytes_ = static_cast<std::size_t>(view.window.width) * 3;
  ring_rows_ = span + 1;
  fit(ring_, static_cast<std::size_t>(ring_rows_) * line_bytes_);
  fit(lines_, static_cast<std::size_t>(span));
  out_ = out;
  stride_ = stride;
  pushed_ = emitted_ = 0;
  rows_out_ = view.window.height;
}

void Resampler::push(const std::uint8_t* row, const std::uint8_t* next) {
  const auto line = [&](int y) { return &ring_[static_cast<std::size_t>(y % ring_rows_) * line_bytes_]; };
  kernels_->across(row, next, across_, line_bytes_ / 3, line(pushed_), next ? line(pushed_ + 1) : nullptr);
  pushed_ += next ? 2 : 1;
  for (; emitted_ < rows_out_; ++emitted_) {
    const std::size_t at = static_cast<std::size_t>(emitted_);
    const int first = down_.first[at], count = down_.count[at];
    if (first + count > pushed_) return;
    for (int k = 0; k < count; ++k) lines_[static_cast<std::size_t>(k)] = line(first + k);
    kernels_->down(lines_.data(), down_.of(at), count, line_bytes_, out_ + at * stride_);
  }
}

std::size_t Resampler::held_bytes() const {
  return held(across_.first) + held(across_.count) + held(across_.pair) + held(down_.first) +
         held(down_.count) + held(down_.pair) + held(ring_) + held(lines_);
}

void Resampler::release() { *this = Resampler(); }

}  // namespace sluice
