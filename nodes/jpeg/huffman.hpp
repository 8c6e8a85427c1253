// Entropy decoding of baseline JPEGs in place of libjpeg's own, which is most of the time that an image
// takes. Blocks outside the crop are only stepped over, several symbols at a time; the others get the very
// coefficients that libjpeg would have given them. Everything after that (inverse transform, upsampling,
// colours) stays libjpeg's. One object per decoder: a table is kept while images use the same codes, symbol
// for symbol, and nothing else is.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "nodes/jpeg/source.hpp"

namespace sluice {

// What jpeg_crop_scanline has made of the columns asked for: the first column of pixels that a row will have,
// and how many.
struct Columns {
  JDIMENSION start = 0, width = 0;
};

class HuffmanReader {
 public:
  HuffmanReader();  // for the library that is loaded
  explicit HuffmanReader(std::string_view libjpeg_version);
  ~HuffmanReader();
  HuffmanReader(const HuffmanReader&) = delete;
  HuffmanReader& operator=(const HuffmanReader&) = delete;

  // After jpeg_start_decompress and jpeg_crop_scanline, before a row is read or skipped. False: libjpeg's own
  // decoder stays in place, for what this one does not read (several scans, arithmetic codes, restart
  // markers) and in a library that it was not written for. Codes that do not exist and data that end too
  // early are errors, told through libjpeg's error manager.
  bool take_over(jpeg_decompress_struct& info, Columns wanted);

  [[nodiscard]] static std::size_t bytes();  // of memory, always

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool fits_library_;
};

}  // namespace sluice
