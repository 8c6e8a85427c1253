// JPEG to resampled RGB in one pass: only the rows and columns that a view needs go through the inverse
// transform, and each row goes straight into the resampler. Unless told otherwise, pixels equal a full decode
// with libjpeg's accurate DCT and fancy upsampling. EXIF orientation is ignored. One decoder per thread; its
// memory is reused from image to image, and what it makes of an image depends on that image alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "graph/memory/pieces.hpp"
#include "nodes/image/crop.hpp"
#include "nodes/jpeg/resample_kernels.hpp"

namespace sluice {

struct JpegHeader {
  ImageSize size;
  int components = 0;             // 1 grey, 3 colour, 4 CMYK or YCCK
  bool progressive = false;       // progressive coding
  bool multi_scan = false;        // needs the coefficients of the whole image at once; true if progressive
  std::size_t scratch_bytes = 0;  // an upper bound of what decode() allocates, without the resampler's share
};

// What may differ from a full decode.
struct JpegQuality {
  int reduce = 1;  // 2, 4 or 8: the inverse transform gives 1/reduce of the size
  Weights weights = Weights::exact;
};

// For those whom nobody stops.
inline constexpr auto never = [] { return false; };

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  // Reads the header. The pieces must stay as they are until decode() is over. A file without an end-of-image
  // marker is refused here: whether a file is bad must not depend on the crop. So is one with arithmetic
  // coding: where its data end too early cannot be told, and not every libjpeg has it.
  Result<JpegHeader> open(Pieces pieces);

  // After a successful open(), once: writes view.window.height rows of RGB pixels, `stride` bytes apart.
  // libjpeg may not take more than `scratch_limit` bytes. After an error the output's content is unspecified.
  // `stop_asked` is called every few milliseconds at least; once it says yes, decode() ends with an error.
  Status decode(const View& view, JpegQuality quality, std::uint8_t* out, std::size_t stride,
                std::size_t scratch_limit, FunctionRef<bool()> stop_asked = never);

  void without_resampling(bool without);  // for measurements: rows are decoded and dropped

  [[nodiscard]] std::size_t held_bytes() const;  // kept between images
  void release();                                // gives that back

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
