#include "cli/doctor/feed.hpp"

#include <fmt/core.h>

namespace sluice {

void look_at_feed(Checklist& list, const FeedFigures& f) {
  if (f.storage <= 0 || f.decode <= 0 || f.step <= 0) return;  // a line above says why
  const std::string text =
      fmt::format("the step takes {:.0f} images/s{}; storage gives {:.0f}, {} decode thread{} {:.0f}", f.step,
                  f.gpu ? " when it is cold" : "", f.storage, f.decode_threads,
                  f.decode_threads == 1 ? "" : "s", f.decode);
  if (f.storage < f.step)
    list.warn(
        "feed", text,
        "the device will wait for storage: raise pipeline.read_threads and pipeline.read_ahead, or copy "
        "the data to a faster disk");
  else if (f.decode < f.step)
    list.warn("feed", text,
              "the device will wait for decoding: raise pipeline.decode_threads if there are idle cores, or "
              "lower data.image_size");
  else
    list.ok("feed", text);
}

}  // namespace sluice
