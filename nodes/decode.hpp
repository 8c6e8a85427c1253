// One sample from compressed bytes to its place in a batch: header, crop, memory check, decode. The outcome
// tells apart what the caller must treat differently: done, a bad image, an image for a thread with more
// scratch, or neither because the run is being stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/random.hpp"
#include "base/result.hpp"
#include "nodes/image/crop.hpp"
#include "nodes/jpeg/decoder.hpp"

namespace sluice {

// The configuration says how large and how random a sample is, and what is too big: nothing gets through
// limits that nobody has set.
struct DecodeOptions {
  int out = 0;                     // pixels per side of a sample
  int resize = 0;                  // short side before the central crop, evaluation only
  Range scale{1, 1};               // share of the image's area, training only
  Range ratio{1, 1};               // width / height, training only
  double flip = 0;                 // probability, training only
  bool fast = false;               // brief weights, training only
  std::size_t thread_scratch = 0;  // bytes that a decoder may hold on to between images
  std::size_t max_scratch = 0;     // bytes; an image that needs more is bad, whatever the budget
  std::uint64_t max_pixels = 0;    // width x height; an image that claims more is bad
};

struct NeedsScratch {
  std::size_t bytes = 0;
};

struct Stopped {};

using DecodeOutcome = std::variant<Done, NeedsScratch, Error, Stopped>;

// A sample's own streams, of Purpose::crop and Purpose::flip. Evaluation does not use them.
struct DecodeStreams {
  DecodeStreams(std::uint64_t seed, std::uint32_t epoch, std::uint64_t index)
      : crop(seed, epoch, index, Purpose::crop), flip(seed, epoch, index, Purpose::flip) {}
  Random crop, flip;
};

// How much smaller an image may be decoded, so that the crop still has at least as many pixels as the output:
// 1, 2, 4 or 8.
[[nodiscard]] int reduction_for(const View& view);

// Writes options.out x options.out RGB pixels to `out`, without gaps. NeedsScratch: more than
// `scratch_allowed`; nothing was written, try again where `bytes` are allowed. Error: stage "decode", the
// subject is for the caller to fill in. Stopped: `stop_asked` said yes before the image was done.
[[nodiscard]] DecodeOutcome decode_sample(JpegDecoder& decoder, Pieces pieces, bool train,
                                          DecodeStreams random, const DecodeOptions& options,
                                          std::size_t scratch_allowed, std::uint8_t* out,
                                          FunctionRef<bool()> stop_asked = never);

}  // namespace sluice
