#include "nodes/jpeg/huffman.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "base/random.hpp"
#include "nodes/jpeg/library.hpp"
#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

int warned = 0;

// Coefficients of all blocks, by libjpeg's own decoder or ours, as pixels of the whole image. Nothing where
// it gives up; `warnings` counts what libjpeg would rather not have seen.
std::optional<Bytes> decode(const Bytes& jpeg, std::size_t piece, bool ours, int& warnings,
                            unsigned reduce = 1, std::optional<Columns> crop = std::nullopt) {
  const auto pieces = in_pieces(jpeg, piece);
  static HuffmanReader reader;  // one for all, as a decode thread has it
  static Bytes pixels;          // a longjmp must find it in memory
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  JpegSource source{};
  install(info, errors);
  errors.base.emit_message = [](j_common_ptr, int level) { warned += level < 0; };
  warned = 0;
  volatile bool whole = false;
  if (setjmp(errors.jump) == 0) {
    jpeg_create_decompress(&info);
    install(info, source);
    rewind(source, pieces);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    info.scale_denom = reduce;
    jpeg_start_decompress(&info);
    Columns columns{0, info.output_width};
    if (crop) {
      columns.start = std::min(crop->start, info.output_width - 1);
      columns.width = std::min(crop->width, info.output_width - columns.start);
      jpeg_crop_scanline(&info, &columns.start, &columns.width);
    }
    if (ours) reader.take_over(info, columns);
    const std::size_t stride =
        std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
    pixels.resize(stride * info.output_height);
    while (info.output_scanline < info.output_height) {
      JSAMPROW line = &pixels[info.output_scanline * stride];
      jpeg_read_scanlines(&info, &line, 1);
    }
    whole = true;
  }
  warnings = warned;
  jpeg_destroy_decompress(&info);
  if (!whole) return std::nullopt;
  return pixels;
}

// Where the compressed image begins.
std::size_t image_data(const Bytes& jpeg) {
  constexpr std::uint8_t start_of_scan[] = {0xFF, 0xDA};
  const auto at = static_cast<std::size_t>(std::ranges::search(jpeg, start_of_scan).begin() - jpeg.begin());
  return at + 2 + static_cast<std::size_t>(jpeg[at + 2] << 8 | jpeg[at + 3]);
}

std::vector<Bytes> kinds() {
  std::vector<Bytes> all;
  for (const int quality : {5, 50, 90, 100})
    for (const bool optimised : {false, true})
      for (const bool noise : {false, true})
        for (const int h : {1, 2})
          all.push_back(make_jpeg({.size = {95, 61},
                                   .h = h,
                                   .v = h,
                                   .quality = quality,
                                   .noise = noise,
                                   .optimised = optimised}));
  all.push_back(make_jpeg({.components = 1, .h = 1, .v = 1}));
  all.push_back(make_jpeg({.components = 4, .ycck = true}));
  all.push_back(make_jpeg({.restart = 3}));
  return all;
}

}  // namespace

TEST_CASE("huffman: the same pixels as by libjpeg's own decoder, whatever the codes and pieces") {
  for (const Bytes& jpeg : kinds())
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{1} << 20}) {
      int warnings = 0;
      const auto own = decode(jpeg, piece, true, warnings), reference = decode(jpeg, piece, false, warnings);
      REQUIRE(own);
      REQUIRE(own == reference);
      REQUIRE(warnings == 0);
    }
}

TEST_CASE("huffman: the same pixels of a crop as by libjpeg's own decoder, at any scale and sampling") {
  std::vector<Bytes> all;
  for (const int h : {1, 2})
    for (const int v : {1, 2})
      for (const int components : {1, 3, 4})
        all.push_back(
            make_jpeg({.size = {203, 40}, .components = components, .h = h, .v = v, .noise = true}));
  for (const Bytes& jpeg : all)
    for (const unsigned reduce : {1u, 2u, 4u, 8u})
      for (const JDIMENSION start : {0u, 5u, 16u, 33u, 120u, 202u})
        for (const JDIMENSION width : {1u, 8u, 40u, 203u}) {
          int warnings = 0;
          CAPTURE(reduce);
          CAPTURE(start);
          CAPTURE(width);
          const auto own = decode(jpeg, 4096, true, warnings, reduce, Columns{start, width});
          REQUIRE(own);
          REQUIRE(own == decode(jpeg, 4096, false, warnings, reduce, Columns{start, width}));
        }
}

TEST_CASE("huffman: only in a library that it was written for") {
  for (const char* version : {"2.1.0", "2.1.2", "2.1.5", "2.1.5.1"}) {
    CAPTURE(version);
    CHECK(is_checked_libjpeg(version));
  }
  for (const char* version :
       {"", ".", "2", "2.1", "2.1.", "2.1.x", "2.1.5x", "2.1.6", "2.1.90", "2.0.6", "3.0.0", "3.2.0", "8.0.0",
        "-2.1.5", "2.-1.5", "2.1.1005", "1.1001.5", "2.1.99999999999"}) {
    CAPTURE(version);
    CHECK_FALSE(is_checked_libjpeg(version));
  }
}

TEST_CASE("huffman: a library tells its version in its own text") {
  CHECK(find_libjpeg_version("") == "");
  CHECK(find_libjpeg_version("libjpeg-turbo version ") == "");
  CHECK(find_libjpeg_version("libjpeg-turbo version 3.0") == "3.0");
  using namespace std::string_view_literals;
  CHECK(find_libjpeg_version("x\0libjpeg-turbo version \0libjpeg-turbo version 2.1.5 (build 2)\0"sv) ==
        "2.1.5");
  CHECK(find_libjpeg_version("mozjpeg version 4.1.1 (build 3)") == "");
  // What is loaded here is what this was built with, unless somebody has put another one in its place.
  INFO("loaded: ", loaded_libjpeg());
  CHECK_FALSE(loaded_libjpeg().empty());
  CHECK(loaded_libjpeg().find_first_not_of("0123456789.") == std::string::npos);
}

TEST_CASE("huffman: libjpeg's own decoder stays where the library is another one") {
  const Bytes jpeg = make_jpeg({.size = {95, 61}});
  const auto taken_over = [&](HuffmanReader& reader) {
    const auto pieces = in_pieces(jpeg, 1 << 20);
    jpeg_decompress_struct info{};
    JpegErrors errors{};
    JpegSource source{};
    install(info, errors);
    volatile bool taken = false;
    if (setjmp(errors.jump) == 0) {
      jpeg_create_decompress(&info);
      install(info, source);
      rewind(source, pieces);
      jpeg_read_header(&info, TRUE);
      jpeg_start_decompress(&info);
      taken = reader.take_over(info, {0, info.output_width});
    }
    jpeg_destroy_decompress(&info);
    return bool{taken};
  };
  HuffmanReader checked("2.1.5"), newer("3.0.0"), unknown(""), loaded;
  CHECK(taken_over(checked));
  CHECK_FALSE(taken_over(newer));
  CHECK_FALSE(taken_over(unknown));
  CHECK(taken_over(loaded) == is_checked_libjpeg(loaded_libjpeg()));
}

TEST_CASE("huffman: damaged data are refused, or decoded as libjpeg decodes them") {
  const std::vector<Bytes> seeds = kinds();
  int same = 0, refused = 0;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    Random random(4, 0, i, Purpose::synth);
    Bytes jpeg = seeds[random.below(static_cast<std::uint32_t>(seeds.size()))];
    const std::size_t begin = image_data(jpeg);
    for (std::uint32_t n = 1 + random.below(3); n > 0; --n) {
      std::uint8_t& byte = jpeg[begin + random.below(static_cast<std::uint32_t>(jpeg.size() - begin))];
      byte =
          static_cast<std::uint8_t>(random.below(3) ? byte ^ (1u << random.below(8)) : random.below(2) * 255);
    }
    if (random.below(4) == 0)
      jpeg.resize(begin + random.below(static_cast<std::uint32_t>(jpeg.size() - begin)));
    int ours = 0, theirs = 0;
    const auto own = decode(jpeg, 1 + random.below(3000), true, ours),
               reference = decode(jpeg, 1 << 20, false, theirs);
    CAPTURE(i);
    if (own) {
      // libjpeg's reads ahead, and gives up where all of the image but nothing else is there.
      const bool has_end = jpeg.end()[-2] == 0xFF && jpeg.end()[-1] == 0xD9;
      REQUIRE((reference || !has_end));
      // After two 0xFF in a row libjpeg decodes an MCU again, on top of what it had made of it: no reference.
      constexpr std::uint8_t padding[] = {0xFF, 0xFF};
      const bool padded = !std::ranges::search(jpeg, padding).empty();
      if (reference && !padded) REQUIRE(*own == *reference);
      ++same;
    } else {
      ++refused;
    }
  }
  CHECK(same > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("huffman: an image that ends early is refused, one with bytes to spare is not") {
  const Bytes whole = make_jpeg({.size = {95, 61}, .noise = true});
  const std::size_t begin = image_data(whole);
  int warnings = 0;
  for (std::size_t length = begin; length + 2 < whole.size(); length += 13) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_FALSE(decode(cut, 512, true, warnings));
    cut.insert(cut.end(), {0xFF, 0xD9});
    CHECK_FALSE(decode(cut, 512, true, warnings));
  }
  Bytes longer = whole;
  longer.insert(longer.end() - 2, 40, 0x55);
  const auto own = decode(longer, 512, true, warnings);
  REQUIRE(own);
  CHECK(own == decode(whole, 512, true, warnings));
}
