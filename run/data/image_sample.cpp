#include "run/data/image_sample.hpp"

#include <chrono>
#include <cmath>

#include "run/data/storage_probe.hpp"

namespace sluice {
ImageSample sample_images(const DataSets& sets, Split split, std::size_t count,
                          const DataPathOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Source& source = sets.of(split);
  const bool train = split == Split::train;
  ImageSample sample;
  sample.whole = source.size();
  JpegDecoder decoder;
  ReadOptions reading = options.read;
  reading.tries = 2;
  std::vector<std::uint8_t> room;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(options.decode.out) *
                                   static_cast<std::size_t>(options.decode.out) * 3);
  std::size_t good = 0;
  double ms = 0;
  for (const std::size_t i : spread(source.size(), count)) {
    const auto [read, piece] = fetch_whole(source, i, reading, room);
    ++sample.looked_at;
    Error error = read.error;
    bool bad = read.kind == Outcome::Kind::bad;
    if (read.kind == Outcome::Kind::fatal) {
      if (!sample.fatal) sample.fatal = read.error;
      continue;
    }
    if (!bad) {
      const auto begin = Clock::now();
      const DecodeOutcome outcome = decode_sample(decoder, {&piece, 1}, train, {options.seed, 0, i},
                                                  options.decode, options.decode.max_scratch, pixels.data());
      if (const Error* found = std::get_if<Error>(&outcome)) {
        error = *found;
        bad = true;
      } else {
        ms += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        ++good;
      }
    }
    if (bad && ++sample.bad == 1) sample.first_bad = source.name(i) + ": " + error.cause;
  }
  sample.ms = good > 0 ? ms / static_cast<double>(good) : 0;
  return sample;
}

bool too_many_bad(const ImageSample& s, double max_bad) {
  const auto n = static_cast<double>(s.looked_at), bad = static_cast<double>(s.bad);
  if (s.bad > 0 && (s.bad == s.looked_at || s.looked_at == s.whole)) return bad > max_bad * n;
  return bad > max_bad * n + 3 * std::sqrt(max_bad * (1 - max_bad) * n);
}

}  // namespace sluice
