#include "nodes/decode.hpp"

#include <string>
#include <utility>

#include "base/text.hpp"
#include "graph/figures/nodes.hpp"
#include "nodes/jpeg/frame.hpp"
#include "nodes/jpeg/resample.hpp"

namespace sluice {
namespace {

Error too_large(const JpegHeader& header, std::size_t bytes) {
  const char* kind = header.progressive ? "progressive" : header.multi_scan ? "several scans" : "baseline";
  return {name_of(NodeId::decode), "",
          "needs " + readable_bytes(bytes) + " of scratch (" + kind + ", " +
              std::to_string(header.size.width) + " x " + std::to_string(header.size.height) +
              "), more than data.max_scratch",
          "raise data.max_scratch, or convert the file to a baseline JPEG or list it in data.exclude"};
}

}  // namespace

int reduction_for(const View& view) {
  int reduce = 8;
  while (reduce > 1 &&
         (view.region.width < reduce * view.to.width || view.region.height < reduce * view.to.height))
    reduce /= 2;
  return reduce;
}

DecodeOutcome decode_sample(JpegDecoder& decoder, Pieces pieces, bool train, DecodeStreams random,
                            const DecodeOptions& options, std::size_t scratch_allowed, std::uint8_t* out,
                            FunctionRef<bool()> stop_asked) {
  // As the read stage does it: whoever looks first, the verdict is the same.
  if (const auto size = claimed_size(pieces))
    if (Status few = within_pixels(*size, options.max_pixels); !few) return std::move(few.error());
  const Result<JpegHeader> header = decoder.open(pieces);
  if (!header) return header.error();
  if (Status few = within_pixels(header->size, options.max_pixels); !few) return std::move(few.error());

  const std::size_t scratch = header->scratch_bytes + resampler_bytes(header->size, options.out);
  if (scratch > options.max_scratch) return too_large(*header, scratch);
  if (scratch > scratch_allowed) return NeedsScratch{scratch};
  // What earlier images left behind counts too: its parts may each be larger than this image needs.
  if (decoder.held_bytes() + scratch > scratch_allowed) decoder.release();

  View view = eval_view(header->size, options.resize, options.out);
  JpegQuality quality;
  if (train) {
    view = train_view(header->size, options.out, options.scale, options.ratio, random.crop);
    view.mirrored = random.flip.uniform() < options.flip;
    quality = {reduction_for(view), options.fast ? Weights::brief : Weights::exact};
  }
  Status status =
      decoder.decode(view, quality, out, static_cast<std::size_t>(options.out) * 3, scratch, stop_asked);
  if (decoder.held_bytes() > options.thread_scratch) decoder.release();
  if (!status && stop_asked()) return Stopped{};
  if (!status) return std::move(status.error());
  return Done{};
}

}  // namespace sluice
