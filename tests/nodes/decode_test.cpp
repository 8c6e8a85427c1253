#include "nodes/decode.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "nodes/jpeg/source.hpp"
#include "tests/support/decode_options.hpp"
#include "tests/support/odd_jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t plenty = std::size_t{1} << 30;

DecodeStreams streams(std::uint64_t index) { return {1, 0, index}; }

const DecodeOptions usual = decode_options(224, 256);

struct TestLimits {
  std::size_t max_scratch = usual.max_scratch;
  std::uint64_t max_pixels = usual.max_pixels;
};
DecodeOptions limited(const TestLimits& limits) {
  DecodeOptions options = usual;
  options.max_scratch = limits.max_scratch;
  options.max_pixels = limits.max_pixels;
  return options;
}

DecodeOutcome decode_with(JpegDecoder& decoder, const Bytes& jpeg, bool train, const DecodeOptions& options,
                          std::size_t allowed, Bytes& out) {
  const auto pieces = in_pieces(jpeg);
  out.assign(static_cast<std::size_t>(options.out) * static_cast<std::size_t>(options.out) * 3, 0);
  return decode_sample(decoder, pieces, train, streams(7), options, allowed, out.data());
}

bool done(const DecodeOutcome& outcome) { return std::holds_alternative<Done>(outcome); }

// The process's largest resident size so far, in KiB.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      long value = 0;
      status >> value;
      return value;
    }
  return 0;
}

}  // namespace

TEST_CASE("every kind of JPEG and every odd shape fills a sample") {
  JpegDecoder decoder;
  Bytes out;
  const DecodeOptions options = decode_options(32, 36);
  std::vector<JpegRecipe> recipes;
  for (const ImageSize size : {ImageSize{1, 1}, ImageSize{1, 90}, ImageSize{90, 1}, ImageSize{2000, 20},
                               ImageSize{20, 2000}, ImageSize{17, 13}, ImageSize{300, 200}})
    recipes.push_back({.size = size});
  recipes.push_back({.components = 1, .h = 1, .v = 1});
  recipes.push_back({.components = 4, .h = 1, .v = 1});
  recipes.push_back({.components = 4, .ycck = true});
  recipes.push_back({.components = 4, .h = 1, .v = 1, .adobe = false});
  recipes.push_back({.progressive = true});
  recipes.push_back({.separate_scans = true});
  for (const JpegRecipe& recipe : recipes)
    for (const bool train : {false, true}) {
      CAPTURE(recipe.size.width);
      CAPTURE(recipe.size.height);
      CAPTURE(recipe.components);
      CHECK(done(decode_with(decoder, make_jpeg(recipe), train, options, plenty, out)));
    }
}

TEST_CASE("a sample depends on its own stream, not on the decoder's past") {
  const Bytes jpeg = make_jpeg({.size = {300, 200}});
  const DecodeOptions options = decode_options(32, 36);
  JpegDecoder fresh, used;
  Bytes one, two, other;
  REQUIRE(done(
      decode_with(used, make_jpeg({.size = {999, 777}, .progressive = true}), true, options, plenty, other)));
  REQUIRE(done(decode_with(fresh, jpeg, true, options, plenty, one)));
  REQUIRE(done(decode_with(used, jpeg, true, options, plenty, two)));
  CHECK(one == two);
  const auto pieces = in_pieces(jpeg);
  REQUIRE(done(decode_sample(used, pieces, true, streams(8), options, plenty, two.data())));
  CHECK(one != two);
}

TEST_CASE("a flat image keeps its colour through decoding and resampling") {
  JpegDecoder decoder;
  Bytes out;
  REQUIRE(
      done(decode_with(decoder, make_jpeg({.size = {640, 480}, .flat = true}), true, usual, plenty, out)));
  for (const std::uint8_t byte : out) REQUIRE(byte == 90);
}

TEST_CASE("bad images are errors of the decode stage, with the subject left to the caller") {
  JpegDecoder decoder;
  Bytes out;
  Bytes truncated = make_jpeg({});
  truncated.resize(truncated.size() / 2);
  const Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  for (const Bytes& bad : {Bytes{}, png, truncated}) {
    const DecodeOutcome outcome = decode_with(decoder, bad, true, usual, plenty, out);
    REQUIRE(std::holds_alternative<Error>(outcome));
    CHECK(std::get<Error>(outcome).stage == "decode");
    CHECK(std::get<Error>(outcome).subject.empty());
    CHECK(std::get<Error>(outcome).hint.find("data.exclude") != std::string::npos);
  }
  CHECK(done(decode_with(decoder, make_jpeg({}), true, usual, plenty, out)));
}

TEST_CASE("100 megapixels, baseline, take little memory") {
  const Bytes jpeg = make_jpeg({.size = {10000, 10000}, .flat = true});
  JpegDecoder decoder;
  Bytes out;
  const long before = peak_kib();
  REQUIRE(done(decode_with(decoder, jpeg, false, usual, 4 << 20, out)));
  CHECK(peak_kib() - before < 32 << 10);  // the image itself would be 300 MB
  CHECK(out[0] == 90);
}

TEST_CASE("a progressive image beyond data.max_scratch is refused by its header") {
  Bytes jpeg = make_jpeg({.progressive = true});
  patch_size(jpeg, {8000, 5000});
  JpegDecoder decoder;
  Bytes out;
  const DecodeOutcome outcome =
      decode_with(decoder, jpeg, true, limited({.max_scratch = 64 << 20}), plenty, out);
  REQUIRE(std::holds_alternative<Error>(outcome));
  CHECK(std::get<Error>(outcome).cause ==
        "needs 115.3 MiB of scratch (progressive, 8000 x 5000), more than data.max_scratch");
}

TEST_CASE("an image beyond data.max_pixels is refused by its header, whatever its coding") {
  JpegDecoder decoder;
  Bytes out;
  for (const bool progressive : {false, true}) {
    const Bytes jpeg = make_jpeg({.size = {300, 200}, .progressive = progressive});
    CHECK(done(decode_with(decoder, jpeg, true, limited({.max_pixels = 60'000}), plenty, out)));
    const DecodeOutcome outcome =
        decode_with(decoder, jpeg, true, limited({.max_pixels = 59'999}), plenty, out);
    REQUIRE(std::holds_alternative<Error>(outcome));
    CHECK(std::get<Error>(outcome).cause == "300 x 200 pixels, more than data.max_pixels (59999)");
    CHECK(std::ranges::all_of(out, [](std::uint8_t byte) { return byte == 0; }));
  }
  // Before anything else is looked at: libjpeg itself would have other words for this one.
  Bytes vast = make_jpeg({});
  patch_size(vast, {65535, 65535});
  const DecodeOutcome outcome = decode_with(decoder, vast, true, usual, plenty, out);
  REQUIRE(std::holds_alternative<Error>(outcome));
  CHECK(std::get<Error>(outcome).cause == "65535 x 65535 pixels, more than data.max_pixels (178956970)");
}

TEST_CASE("scans are bounded by the blocks they go over, whatever the file says in a few bytes") {
  CHECK(most_blocks(1) == std::uint64_t{1} << 25);
  CHECK(most_blocks(60'000) >= 500 * std::uint64_t{60'000});       // small: the number of scans alone counts
  CHECK(most_blocks(8'400'000) == 32 * std::uint64_t{8'400'000});  // 179 megapixels in three components
  CHECK(most_blocks(200'000'000) == 32 * std::uint64_t{200'000'000});  // the largest there is

  // 512 x 512 blocks: 128 times. Its own six scans are followed by empty ones of 14 bytes and a few runs.
  constexpr std::uint64_t rows = 512, most = (std::uint64_t{1} << 25) / (rows * rows);
  const Bytes whole =
      make_jpeg({.size = {4096, 4096}, .components = 1, .h = 1, .v = 1, .progressive = true, .flat = true});
  const auto with_scans = [&](std::uint64_t scans) {
    std::vector<Segment> all = segments_of(whole);
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].marker == 0xDA) begins.push_back(i);
    REQUIRE(begins.size() == 6);
    // The third is the first one of the higher frequencies. Where all are zero it may be of all bits as well.
    std::vector<Segment> empty(all.begin() + static_cast<std::ptrdiff_t>(begins[1]) + 1,
                               all.begin() + static_cast<std::ptrdiff_t>(begins[2]) + 1);
    REQUIRE(empty.back().bytes[9] == 0x02);
    empty.back().bytes[9] = 0;
    for (std::uint64_t n = begins.size(); n < scans; ++n)
      all.insert(all.end() - 1, empty.begin(), empty.end());
    return join(all);
  };
  DecodeOptions options = decode_options(32, 32);
  options.max_scratch = plenty;
  const auto rows_of = [&](const Bytes& jpeg, std::string& cause) {
    JpegDecoder decoder;
    Bytes out(32 * 32 * 3);
    std::uint64_t asked = 0;
    const DecodeOutcome outcome = decode_sample(decoder, in_pieces(jpeg), false, streams(7), options, plenty,
                                                out.data(), [&] { return ++asked, false; });
    const Error* error = std::get_if<Error>(&outcome);
    cause = error ? error->cause : done(outcome) ? "" : "not settled";
    return asked;
  };
  std::string cause;
  CHECK(rows_of(with_scans(most), cause) > most * rows);
  CHECK(cause == "");
  const Bytes hostile = with_scans(480);
  CHECK(hostile.size() < 200'000);
  // Asked with each row of blocks: no row of a scan too many is gone over.
  CHECK(rows_of(hostile, cause) < (most + 1) * rows);
  CHECK(cause == "too many scans for its size");
}

TEST_CASE("a stop is heeded in the midst of an image, wherever the time goes") {
  // Tall: validation takes the middle, and steps over all rows above it.
  const ImageSize size{600, 2400};
  struct Large {
    const char* name;
    Bytes jpeg;
    long times;  // that it is asked at least: with 16 KiB of data, or with a row of blocks of a scan
  };
  std::vector<Large> images;
  images.push_back({"baseline", make_jpeg({.size = size, .noise = true}), 0});
  images.push_back({"restarts", make_jpeg({.size = size, .restart = 100, .noise = true}), 0});
  images.push_back({"several scans", make_jpeg({.size = size, .separate_scans = true}), 3 * 2400 / 16});
  images.push_back(
      {"progressive", make_jpeg({.size = size, .progressive = true, .flat = true}), 10 * 2400 / 16});
  for (Large& image : images)
    if (image.times == 0) image.times = static_cast<long>(image.jpeg.size() / 3 / 16384);  // up to the middle
  constexpr std::size_t row = 32 * 3;
  const DecodeOptions options = decode_options(32, 32);
  for (const auto& [name, jpeg, times] : images)
    for (const std::size_t piece : {std::size_t{16384}, std::size_t{1} << 30})  // as the big lane has a file
      for (const bool train : {false, true}) {
        CAPTURE(name);
        CAPTURE(piece);
        CAPTURE(train);
        const auto pieces = in_pieces(jpeg, piece);
        JpegDecoder decoder;
        const auto decode = [&](long stop_at, long& asked, Bytes& out) {
          asked = 0;
          out.assign(32 * row, 7);
          return decode_sample(decoder, pieces, train, streams(7), options, plenty, out.data(),
                               [&] { return ++asked >= stop_at; });
        };
        Bytes whole, part;
        long all = 0, asked = 0;
        REQUIRE(done(decode(std::numeric_limits<long>::max(), all, whole)));
        for (const long at : {1L, 2L, all / 4, all / 2, all}) {
          CAPTURE(at);
          REQUIRE(std::holds_alternative<Stopped>(decode(at, asked, part)));
          CHECK(asked <= at + 1);  // it goes no further; decode_sample's own look is one more
          CHECK(Bytes(part.end() - row, part.end()) == Bytes(row, 7));  // the last row was not reached
        }
        // Before the first row of pixels too.
        if (!train) {
          CHECK(all > std::max(times, 30L));
          REQUIRE(std::holds_alternative<Stopped>(decode(10, asked, part)));
          CHECK(part == Bytes(32 * row, 7));
        }
        REQUIRE(done(decode(std::numeric_limits<long>::max(), asked, part)));  // fit for use afterwards
        CHECK(part == whole);
        CHECK(asked == all);
      }
}

// Sanitizers need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory that the machine does not have is no fault of the image") {
  Bytes jpeg = make_jpeg({.progressive = true});
  patch_size(jpeg, {12000, 8000});  // 288 MB of coefficients
  JpegDecoder decoder;
  Bytes out;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::ifstream pages("/proc/self/statm");
    std::size_t now = 0;
    pages >> now;
    const rlim_t most = now * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (std::size_t{64} << 20);
    const rlimit little{most, most};
    setrlimit(RLIMIT_AS, &little);
    try {
      _exit(done(decode_with(decoder, jpeg, true, limited({.max_scratch = plenty}), plenty, out)) ? 1 : 2);
    } catch (const std::bad_alloc&) {
      _exit(42);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);  // fails the run instead of changing its batches
}
#endif

TEST_CASE("an image for more scratch than allowed says how much, and works once it is given") {
  const Bytes jpeg = make_jpeg({.size = {1200, 900}, .progressive = true});
  DecodeOptions options = decode_options(224, 256);
  options.thread_scratch = 2 << 20;
  JpegDecoder decoder;
  Bytes out;
  const DecodeOutcome outcome = decode_with(decoder, jpeg, true, options, options.thread_scratch, out);
  REQUIRE(std::holds_alternative<NeedsScratch>(outcome));
  const std::size_t bytes = std::get<NeedsScratch>(outcome).bytes;
  CHECK(bytes > options.thread_scratch);
  CHECK(bytes < 5 << 20);
  CHECK(done(decode_with(decoder, jpeg, true, options, bytes, out)));
  CHECK(decoder.held_bytes() <= options.thread_scratch);
}

TEST_CASE("a decoder does not hold on to more than its thread's allotment") {
  JpegDecoder decoder;
  Bytes out;
  DecodeOptions options = decode_options(32, 32);
  options.thread_scratch = 10'000;
  REQUIRE(done(decode_with(decoder, make_jpeg({.size = {4000, 30}}), false, options, plenty, out)));
  CHECK(decoder.held_bytes() <= 10'000);
}

TEST_CASE("flips come as often as asked for, and mirror pixels, not bytes") {
  const Bytes jpeg = make_jpeg({.size = {60, 40}});
  const auto pieces = in_pieces(jpeg);
  JpegDecoder decoder;
  DecodeOptions options = decode_options(24, 256);
  int flipped = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Bytes plain(24 * 24 * 3), maybe(plain.size()), mirrored;
    options.flip = 0;
    REQUIRE(done(decode_sample(decoder, pieces, true, streams(i), options, plenty, plain.data())));
    options.flip = 0.25;
    REQUIRE(done(decode_sample(decoder, pieces, true, streams(i), options, plenty, maybe.data())));
    for (std::size_t y = 0; y < 24; ++y)
      for (std::size_t x = 24; x-- > 0;)
        mirrored.insert(mirrored.end(), &plain[(y * 24 + x) * 3], &plain[(y * 24 + x) * 3] + 3);
    REQUIRE((maybe == plain || maybe == mirrored));
    flipped += maybe == mirrored;
  }
  CHECK(flipped > 70);
  CHECK(flipped < 130);
}

TEST_CASE("a crop at least twice the output is decoded at half its size, and looks the same") {
  const auto reduction = [](int width, int height, int out) {
    return reduction_for({{0, 0, width, height}, {out, out}, {0, 0, out, out}});
  };
  CHECK(reduction(447, 900, 224) == 1);
  CHECK(reduction(448, 900, 224) == 2);
  CHECK(reduction(900, 448, 224) == 2);
  CHECK(reduction(896, 896, 224) == 4);
  CHECK(reduction(5000, 5000, 224) == 8);
  CHECK(reduction(30, 30, 32) == 1);

  // Nearer to the exact pixels than those of a view that is off by half a reduced pixel.
  const Bytes jpeg = make_jpeg({.size = {611, 457}, .quality = 95});
  const auto pieces = in_pieces(jpeg);
  JpegDecoder decoder;
  for (const int reduce : {2, 4, 8})
    for (const Box region : {Box{0, 0, 611, 457}, Box{13, 7, 500, 401}, Box{101, 55, 510, 402}}) {
      const auto pixels = [&](int by, Box of) {
        Bytes out(40 * 40 * 3);
        REQUIRE(decoder.open(pieces));
        REQUIRE(decoder.decode({of, {40, 40}, {0, 0, 40, 40}}, {.reduce = by}, out.data(), 120, plenty));
        return out;
      };
      const Bytes exact = pixels(1, region);
      const auto difference = [&](const Bytes& other) {
        double sum = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - other[i]);
        return sum / static_cast<double>(exact.size());
      };
      Box shifted = region;
      shifted.x = std::max(shifted.x - reduce / 2, 0);
      shifted.width -= reduce / 2;
      CAPTURE(reduce);
      const double reduced = difference(pixels(reduce, region));
      CHECK(reduced < 2.5);
      CHECK(reduced < 0.7 * difference(pixels(1, shifted)));
    }
}

TEST_CASE("validation is exact whatever training does") {
  const Bytes jpeg = make_jpeg({.size = {300, 200}});
  JpegDecoder decoder;
  Bytes exact, fast;
  const auto make = [&](bool train, const DecodeOptions& options, Bytes& out) {
    REQUIRE(done(decode_with(decoder, jpeg, train, options, plenty, out)));
  };
  DecodeOptions options = decode_options(32, 36);
  make(false, options, exact);
  options.flip = 1;
  options.fast = true;
  make(false, options, fast);
  CHECK(exact == fast);
  options = decode_options(80, 90);
  make(true, options, exact);
  options.fast = true;
  make(true, options, fast);
  int worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) worst = std::max(worst, std::abs(exact[i] - fast[i]));
  CHECK(worst <= 1);
  CHECK(exact != fast);
}
