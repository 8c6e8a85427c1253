// Antialiased bilinear resampling of RGB rows, equal bit for bit to crop(region).resize(to, BILINEAR) of
// Pillow up to 12.0 (later ones sometimes take the vertical pass first: one level of difference): triangle
// filter widened by the reduction, 22-bit weights, 8-bit rows between the passes. Source rows stream in from
// the top; only the few that the vertical filter spans are kept, and only what the window needs is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nodes/crop.hpp"

namespace sluice {

// The weights of one axis: output i is the sum of `count[i]` inputs from `first[i]` on, times weight[i * span
// + k].
struct Taps {
  std::vector<std::int32_t> first, count, weight;
  int span = 0;  // room per output; count[i] <= span
};

// Outputs from .. from + outputs - 1 of an axis that goes from `input` to `to` pixels. Weights never look
// outside the input. Reuses the vectors' memory.
void plan_taps(int input, int to, int from, int outputs, Taps& taps);

// The source pixels that the view touches, in image coordinates.
[[nodiscard]] Box needed(const View& view);

// The most memory that a Resampler takes for any view of such an image with an `out` x `out` window and no
// more reduction than image size / out.
[[nodiscard]] std::size_t resampler_bytes(ImageSize image, int out);

class Resampler {
 public:
  // Gets ready for an image; `out` receives window.height rows of window.width RGB pixels, `stride` bytes
  // apart. Allocates only when an earlier image did not need as much.
  void start(const View& view, std::uint8_t* out, std::size_t stride);
  [[nodiscard]] Box source() const { return source_; }  // = needed(view)
  // The next row of source(): source().width RGB pixels. Writes each output row as soon as it is complete.
  void push(const std::uint8_t* row);
  [[nodiscard]] bool done() const { return emitted_ == rows_out_; }

  [[nodiscard]] std::size_t held_bytes() const;
  void release();

 private:
  Taps across_, down_;
  std::vector<std::uint8_t> ring_;          // down_.span rows of window width
  std::vector<const std::uint8_t*> lines_;  // the rows of one output, in order
  Box source_;
  std::uint8_t* out_ = nullptr;
  std::size_t stride_ = 0, line_bytes_ = 0;
  int pushed_ = 0, emitted_ = 0, rows_out_ = 0;
};

}  // namespace sluice
