#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "run/data/synth_image.hpp"

namespace sluice {
namespace {

struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

void leave(j_common_ptr codec) { std::longjmp(reinterpret_cast<Failure*>(codec->err)->back, 1); }

// No objects with destructors in here: longjmp would pass them by.
bool compress(const std::uint8_t* rgb, unsigned width, unsigned height, const Storage& storage,
              unsigned char** out, unsigned long* size) {
  jpeg_compress_struct codec;
  Failure failure;
  codec.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = leave;
  jpeg_create_compress(&codec);
  if (setjmp(failure.back)) {
    jpeg_destroy_compress(&codec);
    return false;
  }
  jpeg_mem_dest(&codec, out, size);
  codec.image_width = width;
  codec.image_height = height;
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_colorspace(&codec, storage.grey ? JCS_GRAYSCALE : JCS_YCbCr);
  jpeg_set_quality(&codec, storage.quality, TRUE);
  codec.comp_info[0].h_samp_factor = codec.comp_info[0].v_samp_factor =
      storage.grey ? 1 : storage.subsampling;
  if (storage.progressive) jpeg_simple_progression(&codec);
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < height) {
    JSAMPROW row = const_cast<JSAMPROW>(rgb + std::size_t{codec.next_scanline} * width * 3);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  return true;
}

}  // namespace

std::vector<std::uint8_t> encode_jpeg(const Painting& picture, const Storage& storage) {
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const bool done = compress(picture.rgb.data(), static_cast<unsigned>(picture.width),
                             static_cast<unsigned>(picture.height), storage, &buffer, &size);
  std::vector<std::uint8_t> bytes;
  if (done) bytes.assign(buffer, buffer + size);
  std::free(buffer);
  return bytes;
}

}  // namespace sluice
