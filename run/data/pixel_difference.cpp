#include "run/data/pixel_difference.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace sluice {
namespace {

struct Sums {
  double levels = 0, values = 0, changed = 0, images = 0, reduced = 0;
  int largest = 0;
};

// The sample as it is, and as a full decode would have given it.
bool compare(JpegDecoder& decoder, std::span<const std::uint8_t> file, std::uint64_t index,
             const DataPathOptions& o, Sums& sums) {
  const Pieces pieces{&file, 1};
  const std::size_t stride = static_cast<std::size_t>(o.decode.out) * 3;
  std::vector<std::uint8_t> sample(stride * static_cast<std::size_t>(o.decode.out)), whole(sample.size());
  DecodeStreams random(o.seed, 0, index);
  if (!std::holds_alternative<Done>(
          decode_sample(decoder, pieces, true, random, o.decode, o.decode.max_scratch, sample.data())))
    return false;
  const Result<JpegHeader> header = decoder.open(pieces);
  if (!header) return false;
  View view = train_view(header->size, o.decode.out, o.decode.scale, o.decode.ratio, random.crop);
  view.mirrored = random.flip.uniform() < o.decode.flip;
  if (!decoder.decode(view, {}, whole.data(), stride, o.decode.max_scratch)) return false;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const int apart = std::abs(sample[i] - whole[i]);
    sums.levels += apart;
    sums.changed += apart != 0;
    sums.largest = std::max(sums.largest, apart);
  }
  sums.values += static_cast<double>(sample.size());
  sums.images += 1;
  sums.reduced += reduction_for(view) > 1;
  return true;
}

}  // namespace

PixelDifference pixel_difference(const Source& source, std::span<const std::size_t> items,
                                 const DataPathOptions& options) {
  JpegDecoder decoder;
  Sums sums;
  std::vector<std::uint8_t> room;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (const auto [read, bytes] = fetch_whole(source, items[i], options.read, room);
        read.kind == Outcome::Kind::done)
      (void)compare(decoder, bytes, i, options, sums);
  if (sums.images == 0) return {};
  return {sums.levels / sums.values, sums.changed / sums.values, sums.largest, sums.reduced / sums.images};
}

}  // namespace sluice
