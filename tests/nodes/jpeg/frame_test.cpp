#include "nodes/jpeg/frame.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "nodes/jpeg/decoder.hpp"
#include "tests/support/odd_jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// Whether the file's own header says the same, where libjpeg gets as far as that.
bool agrees(const Bytes& file, std::size_t piece) {
  const auto pieces = in_pieces(file, piece);
  JpegDecoder decoder;
  const Result<JpegHeader> header = decoder.open(pieces);
  return !header || claimed_size(pieces) == header->size;
}

}  // namespace

TEST_CASE("claimed size: as libjpeg reads it, for odd files too and in pieces of any length") {
  int told = 0;
  for (const OddJpeg& file : crafted_jpegs()) {
    CAPTURE(file.name);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20})
      REQUIRE(agrees(file.bytes, piece));
    told += claimed_size(in_pieces(file.bytes)).has_value();
  }
  const std::vector<Bytes> from = sound_jpegs();
  for (std::uint64_t i = 0; i < 3000; ++i) {
    CAPTURE(i);
    REQUIRE(agrees(mutant(from, 31, i), 500));
  }
  CHECK(told > 200);
}

TEST_CASE("claimed size: nothing where no frame begins before the image data") {
  const Bytes whole = make_jpeg({.size = {300, 200}});
  CHECK(claimed_size(in_pieces(whole)) == ImageSize{300, 200});
  std::vector<Segment> segments = segments_of(whole);
  std::erase_if(segments, [](const Segment& s) { return s.marker == 0xC0; });
  for (const Bytes& none : {join(segments), Bytes{}, Bytes{0xFF}, Bytes{0xFF, 0xD8}, Bytes(100, 0xFF),
                            Bytes{'n', 'o', 't', ' ', 'o', 'n', 'e'}})
    CHECK_FALSE(claimed_size(in_pieces(none)));
  const auto frame =
      static_cast<std::size_t>(std::ranges::search(whole, Bytes{0xFF, 0xC0}).begin() - whole.begin());
  for (std::size_t length = 0; length < frame + 9; ++length)
    CHECK_FALSE(claimed_size(in_pieces(std::span(whole).first(length), 3)));
  CHECK(claimed_size(in_pieces(std::span(whole).first(frame + 9), 3)));
}

TEST_CASE("pixels are counted without overflow, and up to the limit they are few enough") {
  CHECK(within_pixels({65535, 65535}, std::uint64_t{65535} * 65535));
  CHECK_FALSE(within_pixels({65535, 65535}, std::uint64_t{65535} * 65535 - 1));
  CHECK(within_pixels({65535, 0}, 1));
  const Status many = within_pixels({65500, 65500}, 178'956'970);
  REQUIRE_FALSE(many);
  CHECK(many.error().stage == "decode");
  CHECK(many.error().cause == "65500 x 65500 pixels, more than data.max_pixels (178956970)");
}
