// What stands between libjpeg and the rest: input from a file in pieces, and errors as text behind a longjmp.
// Also tells what a file is that is not a JPEG.
#pragma once

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include <jerror.h>
#include <jpeglib.h>

#include "base/function_ref.hpp"
#include "nodes/jpeg/decoder.hpp"

namespace sluice {

// libjpeg's error manager. After an error, `message` tells the cause and control is at `jump`.
struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message;
};

struct JpegSource {
  jpeg_source_mgr base;  // first: libjpeg hands back a pointer to it
  Pieces pieces;
  std::size_t next;                    // index of the piece after the current one
  std::span<const std::uint8_t> rest;  // of the current one, behind what libjpeg has of it
  jpeg_progress_mgr progress;
  int scan;                               // the last one that was counted
  std::uint64_t blocks;                   // that the scans up to it go over
  const FunctionRef<bool()>* stop_asked;  // null: nobody will stop it
};

static_assert(std::is_standard_layout_v<JpegErrors> && std::is_standard_layout_v<JpegSource>);

// Blocks that all scans of a file together may go over, if its image has so many. Sound progressive files go
// over each block six times (ten scans, most of them of one component) and the most thorough encoders not
// twice as often, so every file may do it 32 times. A small one may do it as often as it likes, up to the
// limit on the number of scans: 2^25 blocks take about a third of a second.
constexpr std::uint64_t most_blocks(std::uint64_t image) {
  return std::max(32 * image, std::uint64_t{1} << 25);
}

void install(jpeg_decompress_struct& info, JpegErrors& errors);
void install(jpeg_decompress_struct& info, JpegSource& source);  // after jpeg_create_decompress
void rewind(JpegSource& source, Pieces pieces);
bool advance(JpegSource& source);  // to the next bytes, not too many at once; false: there are none

// Leaves by the error manager if a stop was asked for. Called with every few rows of pixels, with every row
// of blocks of a file in several scans, and with every few KiB of input: none of them takes long.
void heed_stop(jpeg_decompress_struct& info);

// Is there an end-of-image marker after the point that has been read?
[[nodiscard]] bool has_end_marker(const JpegSource& source);

// "" if the bytes begin as a JPEG does, else what is wrong: "empty file", "not a JPEG (starts with PNG
// signature)".
[[nodiscard]] std::string not_a_jpeg(Pieces pieces);

}  // namespace sluice
