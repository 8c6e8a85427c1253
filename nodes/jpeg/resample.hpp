// Antialiased bilinear resampling of RGB rows, equal bit for bit to crop(region).resize(to, BILINEAR) of
// Pillow up to 12.0 (later ones sometimes take the vertical pass first: one level of difference): triangle
// filter widened by the reduction, 22-bit weights, 8-bit rows between the passes. Source rows stream in from
// the top; only the few that the vertical filter spans are kept, and only what the window needs is computed.
// With brief weights a value may be one level off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nodes/image/crop.hpp"
#include "nodes/jpeg/resample_kernels.hpp"

namespace sluice {

// One axis of a view: `to` outputs over `length` inputs that begin `offset` after the first one. `inputs` is
// how many there are; weights never look outside.
struct SampledAxis {
  double offset = 0, length = 0;
  int inputs = 0, to = 0;
};

// Outputs from .. from + outputs - 1 of an axis, in reverse order if `mirrored`. Reuses the vectors' memory.
void plan_taps(const SampledAxis& axis, int from, int outputs, bool mirrored, Weights weights, Taps& taps);

// The source pixels that the view touches, in pixels of the image at 1/reduce of its size (rounded up).
[[nodiscard]] Box needed(const View& view, ImageSize image, int reduce = 1);

// The most memory that a Resampler takes for any view of such an image with an `out` x `out` window and no
// more reduction than image size / out.
[[nodiscard]] std::size_t resampler_bytes(ImageSize image, int out);

class Resampler {
 public:
  static constexpr std::size_t row_padding =
      16;  // bytes after a source row that may be read, and mean nothing

  // Gets ready for an image whose rows come at 1/reduce of its size; `out` receives window.height rows of
  // window.width RGB pixels, `stride` bytes apart. Allocates only when an earlier image did not need as much.
  void start(const View& view, ImageSize image, int reduce, std::uint8_t* out, std::size_t stride,
             const Kernels& kernels = best_kernels(Weights::exact));
  [[nodiscard]] Box source() const { return source_; }  // = needed(view, image, reduce)
  // The next row of source(), or the next two: source().width RGB pixels and some padding. Writes each output
  // row as soon as it is complete.
  void push(const std::uint8_t* row, const std::uint8_t* next = nullptr);
  [[nodiscard]] bool done() const { return emitted_ == rows_out_; }

  [[nodiscard]] std::size_t held_bytes() const;
  void release();

 private:
  const Kernels* kernels_ = nullptr;
  Taps across_, down_;
  std::vector<std::uint8_t> ring_;          // rows of window width, one more than a filter spans
  std::vector<const std::uint8_t*> lines_;  // the rows of one output, in order
  Box source_;
  std::uint8_t* out_ = nullptr;
  std::size_t stride_ = 0, line_bytes_ = 0;
  int pushed_ = 0, emitted_ = 0, rows_out_ = 0, ring_rows_ = 1;
};

}  // namespace sluice
