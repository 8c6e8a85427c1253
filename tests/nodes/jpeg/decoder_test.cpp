#include "nodes/jpeg/decoder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

View as_it_is(Box box) { return {box, {box.width, box.height}, {0, 0, box.width, box.height}}; }

Result<Bytes> decode_box(JpegDecoder& decoder, const Bytes& jpeg, Box box, std::size_t piece = 16384) {
  const auto pieces = in_pieces(jpeg, piece);
  const Result<JpegHeader> header = decoder.open(pieces);
  if (!header) return header.error();
  if (box.width == 0) box = {0, 0, header->size.width, header->size.height};
  Bytes out(static_cast<std::size_t>(box.width) * static_cast<std::size_t>(box.height) * 3);
  const Status status = decoder.decode(as_it_is(box), {}, out.data(), static_cast<std::size_t>(box.width) * 3,
                                       header->scratch_bytes);
  if (!status) return status.error();
  return out;
}

Result<Bytes> decode_all(const Bytes& jpeg, std::size_t piece = 16384) {
  JpegDecoder decoder;
  return decode_box(decoder, jpeg, {}, piece);
}

std::string cause_of(std::string_view text) {
  JpegDecoder decoder;
  const Bytes bytes(text.begin(), text.end());
  const auto pieces = in_pieces(bytes, 3);
  const Result<JpegHeader> header = decoder.open(pieces);
  REQUIRE_FALSE(header);
  CHECK(header.error().stage == "decode");
  return header.error().cause;
}

Bytes cut(const Bytes& full, int width, Box box) {
  Bytes part;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const auto first = full.begin() + (static_cast<std::ptrdiff_t>(y) * width + box.x) * 3;
    part.insert(part.end(), first, first + static_cast<std::ptrdiff_t>(box.width) * 3);
  }
  return part;
}

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

std::uint64_t fnv(const Bytes& data) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::uint8_t byte : data) value = (value ^ byte) * 0x100000001B3;
  return value;
}

}  // namespace

TEST_CASE("any part of an image equals that part of a full decode") {
  JpegDecoder decoder;  // one for all, as a decode thread has it
  std::uint64_t images = 0;
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const ImageSize size :
         {ImageSize{97, 75}, ImageSize{64, 64}, ImageSize{33, 130}, ImageSize{5, 3}, ImageSize{1, 1}})
      for (int kind = 0; kind < 4; ++kind) {
        JpegRecipe recipe{.size = size, .h = h, .v = v};
        recipe.components = kind == 1 ? 1 : 3;
        recipe.progressive = kind == 2;
        recipe.separate_scans = kind == 3;
        recipe.restart = kind == 0 && size.width == 97 ? 3 : 0;
        const Bytes jpeg = make_jpeg(recipe);
        int components = 0;
        const Bytes full = full_decode(jpeg, components);
        Random random(3, 0, images++, Purpose::synth);
        for (int i = 0; i < 25; ++i) {
          const auto pick = [&](int most) {
            return 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(most)));
          };
          Box box{0, 0, pick(size.width), pick(size.height)};
          box.x = pick(size.width - box.width + 1) - 1;
          box.y = pick(size.height - box.height + 1) - 1;
          const Result<Bytes> part = decode_box(decoder, jpeg, box, i % 2 ? 16384 : 37);
          CAPTURE(h);
          CAPTURE(v);
          CAPTURE(kind);
          CAPTURE(size.width);
          CAPTURE(box.x);
          CAPTURE(box.y);
          REQUIRE(part);
          REQUIRE(*part == cut(full, size.width, box));
        }
      }
}

TEST_CASE("so does a part of an image decoded at a part of its size, whatever the sampling") {
  JpegDecoder decoder;
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}})
    for (const bool progressive : {false, true})
      for (const int reduce : {2, 4, 8}) {
        const ImageSize size{517, 389};
        const Bytes jpeg = make_jpeg({.size = size, .h = h, .v = v, .progressive = progressive});
        int components = 0;
        const Bytes full = full_decode(jpeg, components, reduce);
        const int across = (size.width + reduce - 1) / reduce;
        for (const Box box : {Box{0, 0, 512, 384}, Box{160, 96, 320, 240}, Box{480, 8, 32, 360}}) {
          const Box part{box.x / reduce, box.y / reduce, box.width / reduce, box.height / reduce};
          Bytes out(static_cast<std::size_t>(part.width * part.height * 3));
          const auto pieces = in_pieces(jpeg);
          const Result<JpegHeader> header = decoder.open(pieces);
          REQUIRE(header);
          const View view{box, {part.width, part.height}, {0, 0, part.width, part.height}};
          REQUIRE(decoder.decode(view, {.reduce = reduce}, out.data(),
                                 static_cast<std::size_t>(part.width) * 3, header->scratch_bytes));
          CAPTURE(h);
          CAPTURE(v);
          CAPTURE(reduce);
          CHECK((out == cut(full, across, part)));
        }
      }
}

TEST_CASE("so does a part of a progressive image that ends before its last refinement") {
  // libjpeg smooths such an image across block borders.
  constexpr std::uint8_t start_of_scan[] = {0xFF, 0xDA};
  JpegDecoder decoder;
  for (const int h : {1, 2}) {
    Bytes jpeg = make_jpeg({.size = {97, 75}, .h = h, .v = h, .progressive = true, .quality = 60});
    for (int scans = 0; scans < 8; ++scans) {
      const auto last = std::ranges::find_end(jpeg, start_of_scan).begin();
      jpeg.erase(last, jpeg.end());
      jpeg.insert(jpeg.end(), {0xFF, 0xD9});
      int components = 0;
      const Bytes full = full_decode(jpeg, components);
      for (const Box box : {Box{40, 30, 20, 17}, Box{1, 1, 90, 60}, Box{90, 70, 7, 5}}) {
        const Result<Bytes> part = decode_box(decoder, jpeg, box);
        REQUIRE(part);
        CHECK(*part == cut(full, 97, box));
      }
    }
  }
}

TEST_CASE("the header tells size, components, scans and what decoding will take") {
  JpegDecoder decoder;
  const auto header_of = [&](const JpegRecipe& recipe) {
    const Bytes jpeg = make_jpeg(recipe);
    const auto pieces = in_pieces(jpeg);
    const Result<JpegHeader> header = decoder.open(pieces);
    REQUIRE(header);
    return *header;
  };
  const JpegHeader baseline = header_of({.size = {640, 480}});
  CHECK(baseline.size == ImageSize{640, 480});
  CHECK(baseline.components == 3);
  CHECK_FALSE(baseline.progressive);
  CHECK_FALSE(baseline.multi_scan);
  CHECK(baseline.scratch_bytes < 300'000);
  const JpegHeader progressive = header_of({.size = {640, 480}, .progressive = true});
  CHECK(progressive.progressive);
  CHECK(progressive.multi_scan);
  CHECK(progressive.scratch_bytes >= baseline.scratch_bytes + 640 * 480 * 3);  // 1.5 coefficients of 2 bytes
  const JpegHeader separate = header_of({.size = {640, 480}, .separate_scans = true});
  CHECK_FALSE(separate.progressive);
  CHECK(separate.multi_scan);
  CHECK(header_of({.components = 1, .h = 1, .v = 1}).components == 1);
  CHECK(header_of({.components = 4, .h = 1, .v = 1}).components == 4);
}

TEST_CASE("libjpeg is held to the scratch limit") {
  const Bytes jpeg = make_jpeg({.size = {1000, 800}, .progressive = true});
  const auto pieces = in_pieces(jpeg);
  JpegDecoder decoder;
  Bytes out(64 * 64 * 3);
  REQUIRE(decoder.open(pieces));
  const Status status = decoder.decode(as_it_is({0, 0, 64, 64}), {}, out.data(), 192, 1 << 20);
  REQUIRE_FALSE(status);
  CHECK(status.error().stage == "decode");
  CHECK(decode_box(decoder, jpeg, {0, 0, 64, 64}));  // and the decoder is fit for use afterwards
}

TEST_CASE("grey becomes RGB with three equal channels") {
  const Result<Bytes> pixels = decode_all(make_jpeg({.components = 1, .h = 1, .v = 1}));
  REQUIRE(pixels);
  for (std::size_t i = 0; i < pixels->size(); i += 3) {
    REQUIRE((*pixels)[i] == (*pixels)[i + 1]);
    REQUIRE((*pixels)[i] == (*pixels)[i + 2]);
  }
}

TEST_CASE("CMYK becomes RGB as in Pillow, with Adobe's marker or without") {
  // File and hash from pillow_golden.py.
  const Bytes adobe = from_hex(
      "ffd8ffee000e41646f626500640000000000ffdb0043000a07070807060a0808080b0a0a0b0e18100e0d0d0e1d15161118231f"
      "2524221f"
      "2221262b372f26293429212230413134393b3e3e3e252e4449433c48373d3e3bffc00014080008000c044311004d1100591100"
      "4b1100ff"
      "c40017000003010000000000000000000000000000060704ffc400281000010203040b00000000000000000000000511020422"
      "13"
      "1764a10306071215243235436181ffda000e0443004d0059004b00003f006bd77f27d365e9e2331897d7faab290b6b7c377ab6"
      "621aaddc"
      "230bd3c4664fe757f998ab11e6f6a16131168edd9bd9ffd9");
  Bytes plain(adobe.begin() + 16, adobe.end());
  plain[0] = 0xFF;
  plain[1] = 0xD8;
  for (const Bytes& jpeg : {adobe, plain}) {
    const Result<Bytes> pixels = decode_all(jpeg);
    REQUIRE(pixels);
    CHECK(fnv(*pixels) == 0x60c445754ab05727);
  }
}

TEST_CASE("YCCK, sampled down and progressive too, becomes what its inks multiply to") {
  for (const bool progressive : {false, true}) {
    const Bytes jpeg =
        make_jpeg({.size = {61, 47}, .components = 4, .progressive = progressive, .ycck = true});
    int components = 0;
    const Bytes inks = full_decode(jpeg, components);
    REQUIRE(components == 4);
    const Result<Bytes> pixels = decode_all(jpeg);
    REQUIRE(pixels);
    REQUIRE(pixels->size() / 3 == inks.size() / 4);
    for (std::size_t i = 0; i < inks.size() / 4; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        REQUIRE(std::abs((*pixels)[i * 3 + c] - inks[i * 4 + c] * inks[i * 4 + 3] / 255) <= 1);
  }
}

TEST_CASE("a file that ends early is an error wherever it ends, even if the wanted rows are there") {
  for (const bool progressive : {false, true}) {
    const Bytes jpeg = make_jpeg({.size = {120, 90}, .progressive = progressive});
    JpegDecoder decoder;
    for (std::size_t length = 0; length < jpeg.size(); length += length + 40 < jpeg.size() ? 13 : 1) {
      const Bytes part(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(length));
      CAPTURE(length);
      REQUIRE_FALSE(decode_box(decoder, part, {0, 0, 8, 1}));
    }
    CHECK(decode_box(decoder, jpeg, {0, 0, 8, 1}));
  }
  const Bytes jpeg = make_jpeg({});
  const Result<Bytes> cut_off = decode_all(Bytes(jpeg.begin(), jpeg.end() - 2));
  REQUIRE_FALSE(cut_off);
  CHECK(cut_off.error().cause == "truncated: the file has no end-of-image marker");
}

TEST_CASE("arithmetic coding is refused by name, whole or not, and in no time") {
  for (const bool progressive : {false, true}) {
    const Bytes whole = make_jpeg({.size = {120, 90}, .progressive = progressive, .arithmetic = true});
    Bytes cut(whole.begin(), whole.begin() + 500);
    cut.insert(cut.end(), {0xFF, 0xD9});
    Bytes vast = cut;
    for (std::size_t i = 2; i + 8 < vast.size(); ++i)
      if (vast[i] == 0xFF && (vast[i + 1] == 0xC9 || vast[i + 1] == 0xCA))
        std::fill_n(&vast[i + 5], 4, std::uint8_t{0xFF}), vast[i + 5] = vast[i + 7] = 0x30;
    for (const Bytes& jpeg : {whole, cut, vast}) {
      const Result<Bytes> pixels = decode_all(jpeg);
      REQUIRE_FALSE(pixels);
      CHECK(pixels.error().cause == "arithmetic coding, which is not supported");
    }
  }
}

TEST_CASE("lost image data is an error although libjpeg would fill in grey") {
  for (const bool progressive : {false, true}) {
    Bytes jpeg = make_jpeg({.size = {200, 200}, .progressive = progressive});
    jpeg.resize(jpeg.size() * 2 / 3);
    jpeg.push_back(0xFF);
    jpeg.push_back(0xD9);
    const Result<Bytes> pixels = decode_all(jpeg);
    REQUIRE_FALSE(pixels);
    CHECK(pixels.error().cause.find("premature end") != std::string::npos);
  }
}

TEST_CASE("stray bytes around the image do no harm") {
  const Bytes jpeg = make_jpeg({});
  const Result<Bytes> expected = decode_all(jpeg);
  REQUIRE(expected);
  Bytes trailing = jpeg;
  trailing.insert(trailing.end(), 1000, 0x20);
  Bytes between = jpeg;
  between.insert(between.begin() + 20, 5, 0x00);  // after the JFIF segment
  for (const Bytes& odd : {trailing, between}) {
    const Result<Bytes> pixels = decode_all(odd);
    REQUIRE(pixels);
    CHECK(*pixels == *expected);
  }
}

TEST_CASE("large segments are skipped across pieces, and their content is not taken for the image's end") {
  const Bytes jpeg = make_jpeg({});
  Bytes with_thumbnail(jpeg.begin(), jpeg.begin() + 2);
  with_thumbnail.insert(with_thumbnail.end(), {0xFF, 0xE1, 0xC3, 0x52});
  with_thumbnail.insert(with_thumbnail.end(), 0xC350, 0xD9);
  with_thumbnail[100] = 0xFF;
  with_thumbnail.insert(with_thumbnail.end(), jpeg.begin() + 2, jpeg.end());
  const Result<Bytes> pixels = decode_all(with_thumbnail, 1000);
  REQUIRE(pixels);
  CHECK(*pixels == *decode_all(jpeg));
  with_thumbnail.erase(with_thumbnail.end() - 2, with_thumbnail.end());
  CHECK_FALSE(decode_all(with_thumbnail, 1000));
}

TEST_CASE("what is not a JPEG is named") {
  CHECK(cause_of("") == "empty file");
  CHECK(cause_of("\x89PNG\r\n\x1a\n") == "not a JPEG (starts with PNG signature)");
  CHECK(cause_of("RIFF") == "not a JPEG (starts with plain text)");  // too short for a WebP
  CHECK(cause_of("GIF89a....") == "not a JPEG (starts with GIF signature)");
  CHECK(cause_of("BM\x01\x02\x03") == "not a JPEG (starts with BMP signature)");
  CHECK(cause_of("RIFF1234WEBPVP8 ") == "not a JPEG (starts with WebP signature)");
  CHECK(cause_of({"II*\0\x08", 5}) == "not a JPEG (starts with TIFF signature)");
  CHECK(cause_of({"MM\0*\x08", 5}) == "not a JPEG (starts with TIFF signature)");
  CHECK(cause_of("\n<!DOCTYPE html><html>") == "not a JPEG (starts with HTML or XML text)");
  CHECK(cause_of("404 not found\n") == "not a JPEG (starts with plain text)");
  CHECK(cause_of({"\0\0\0\0\0\0", 6}) == "not a JPEG (starts with zero bytes)");
  CHECK(cause_of("\x01\x02\x03") == "not a JPEG (unknown signature)");
}

TEST_CASE("decode() needs an open image and uses it up") {
  const Bytes jpeg = make_jpeg({});
  const auto pieces = in_pieces(jpeg);
  JpegDecoder decoder;
  Bytes out(8 * 8 * 3);
  const View view = as_it_is({0, 0, 8, 8});
  CHECK_FALSE(decoder.decode(view, {}, out.data(), 24, 1 << 20));
  REQUIRE(decoder.open(pieces));
  CHECK(decoder.decode(view, {}, out.data(), 24, 1 << 20));
  CHECK_FALSE(decoder.decode(view, {}, out.data(), 24, 1 << 20));
}
