#include "tests/support/jpegs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <jpeglib.h>

namespace sluice::test {
namespace {

[[noreturn]] void refuse(j_common_ptr) { throw std::runtime_error("test JPEG: libjpeg failed"); }

// Smooth, with edges that move with x and y, and different in each channel.
std::uint8_t paint(int x, int y, int channel) {
  const int wave = (x * (3 + channel) + y * (5 - channel)) & 255;
  const int edge = ((x / 11 + y / 7 + channel) & 1) * 60;
  return static_cast<std::uint8_t>((wave < 128 ? wave : 255 - wave) + edge);
}

std::uint8_t speckle(int x, int y, int channel) {
  const auto mixed = static_cast<std::uint32_t>(x * 7919 + y * 104729 + channel * 1299709) * 2654435761u;
  return static_cast<std::uint8_t>(mixed >> 21);
}

void set_layout(jpeg_compress_struct& info, const JpegRecipe& recipe, std::vector<jpeg_scan_info>& scans) {
  jpeg_set_defaults(&info);
  if (recipe.components == 4) jpeg_set_colorspace(&info, recipe.ycck ? JCS_YCCK : JCS_CMYK);
  info.write_Adobe_marker = recipe.components == 4 && recipe.adobe;
  jpeg_set_quality(&info, recipe.quality, TRUE);
  for (int i = 0; i < info.num_components; ++i) {
    const bool full = i == 0 || i == 3;
    info.comp_info[i].h_samp_factor = full ? recipe.h : 1;
    info.comp_info[i].v_samp_factor = full ? recipe.v : 1;
  }
  info.optimize_coding = recipe.optimised;
  info.arith_code = recipe.arithmetic;
  info.restart_interval = static_cast<unsigned>(recipe.restart);
  if (recipe.progressive) jpeg_simple_progression(&info);
  if (recipe.separate_scans) {
    for (int i = 0; i < info.num_components; ++i) scans.push_back({1, {i, 0, 0, 0}, 0, 63, 0, 0});
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
}

}  // namespace

Bytes make_jpeg(const JpegRecipe& recipe) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.error_exit = refuse;
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &memory, &length);
  info.image_width = static_cast<JDIMENSION>(recipe.size.width);
  info.image_height = static_cast<JDIMENSION>(recipe.size.height);
  info.input_components = recipe.components;
  info.in_color_space = recipe.components == 1 ? JCS_GRAYSCALE : recipe.components == 3 ? JCS_RGB : JCS_CMYK;
  std::vector<jpeg_scan_info> scans;
  set_layout(info, recipe, scans);

  Bytes row(static_cast<std::size_t>(recipe.size.width) * static_cast<std::size_t>(recipe.components), 90);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < recipe.size.height; ++y) {
    if (!recipe.flat) {
      std::size_t at = 0;
      for (int x = 0; x < recipe.size.width; ++x)
        for (int c = 0; c < recipe.components; ++c)
          row[at++] = recipe.noise ? speckle(x, y, c) : paint(x, y, c);
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes jpeg(memory, memory + length);
  std::free(memory);
  return jpeg;
}

Bytes full_decode(std::span<const std::uint8_t> jpeg, int& components, int reduce) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.error_exit = refuse;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, jpeg.data(), jpeg.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(reduce);
  jpeg_start_decompress(&info);
  components = info.output_components;
  const std::size_t stride = std::size_t{info.output_width} * static_cast<std::size_t>(components);
  Bytes pixels(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW line = &pixels[info.output_scanline * stride];
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return pixels;
}

void patch_size(Bytes& jpeg, ImageSize size) {
  for (std::size_t i = 2; i + 9 < jpeg.size();) {
    const int marker = jpeg[i + 1];
    if (marker >= 0xC0 && marker <= 0xC2) {
      jpeg[i + 5] = static_cast<std::uint8_t>(size.height >> 8);
      jpeg[i + 6] = static_cast<std::uint8_t>(size.height);
      jpeg[i + 7] = static_cast<std::uint8_t>(size.width >> 8);
      jpeg[i + 8] = static_cast<std::uint8_t>(size.width);
      return;
    }
    i += 2 + static_cast<std::size_t>(jpeg[i + 2] << 8 | jpeg[i + 3]);
  }
  throw std::runtime_error("test JPEG: no frame header");
}

std::vector<std::span<const std::uint8_t>> in_pieces(std::span<const std::uint8_t> data, std::size_t length) {
  std::vector<std::span<const std::uint8_t>> pieces;
  for (std::size_t at = 0; at < data.size(); at += length)
    pieces.push_back(data.subspan(at, std::min(length, data.size() - at)));
  return pieces;
}

}  // namespace sluice::test
