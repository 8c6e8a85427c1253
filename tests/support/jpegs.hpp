// JPEGs for tests, made in memory from a formula, and a plain full decode to compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nodes/image/crop.hpp"

namespace sluice::test {

using Bytes = std::vector<std::uint8_t>;

struct JpegRecipe {
  ImageSize size{64, 48};
  int components = 3;  // 1 grey, 3 colour, 4 CMYK
  int h = 2, v = 2;    // sampling factors of the first component; the others have 1
  bool progressive = false;
  bool separate_scans = false;  // baseline, but one scan per component
  bool ycck = false;            // four components as YCCK instead of CMYK
  bool adobe = true;            // four components: with Adobe's marker
  int restart = 0;              // MCUs between restart markers
  int quality = 90;
  bool flat = false;       // one colour everywhere: small and fast at any size
  bool noise = false;      // no colour like its neighbour's: long codes
  bool optimised = false;  // codes made for this image
  bool arithmetic = false;
};

Bytes make_jpeg(const JpegRecipe& recipe);

// All rows at 1/reduce of the size, `components` bytes per pixel: RGB for grey and colour, what libjpeg gives
// as CMYK for four components.
Bytes full_decode(std::span<const std::uint8_t> jpeg, int& components, int reduce = 1);

// Rewrites width and height in the frame header.
void patch_size(Bytes& jpeg, ImageSize size);

// The data cut into pieces of `length` bytes, the last one shorter.
std::vector<std::span<const std::uint8_t>> in_pieces(std::span<const std::uint8_t> data,
                                                     std::size_t length = 16384);

}  // namespace sluice::test
