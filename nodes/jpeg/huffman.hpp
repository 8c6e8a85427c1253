// Entropy decoding of baseline JPEGs in place of libjpeg's own, which is most of the time that an image
// takes. Blocks outside the crop are only stepped over, several symbols at a time; the others get the very
// coefficients that libjpeg would have given them. Everything after that (inverse transform, upsampling,
// colours) stays libjpeg's. One object per decoder: a table is kept while images use the same codes, symbol
// for symbol, and nothing else is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nodes/jpeg/source.hpp"

namespace sluice {

class HuffmanReader {
 public:
  HuffmanReader();
  ~HuffmanReader();
  HuffmanReader(const HuffmanReader&) = delete;
  HuffmanReader& operator=(const HuffmanReader&) = delete;

  // After jpeg_start_decompress and jpeg_crop_scanline, before a row is read or skipped. Leaves libjpeg's own
  // decoder in place for what it does not read: several scans, arithmetic codes, restart markers. Codes that
  // do not exist and data that end too early are errors, told through libjpeg's error manager.
  void take_over(jpeg_decompress_struct& info);

  [[nodiscard]] static std::size_t bytes();  // of memory, always

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
