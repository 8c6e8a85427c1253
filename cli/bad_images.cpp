#include "cli/bad_images.hpp"

#include <cstdio>

namespace sluice {

Status BadImages::note(const BatchPlan& plan, std::uint64_t images, const std::vector<Bad>& bad) {
  if (plan.in_phase == 0) in_phase_ = 0;
  if (bad.empty()) return Done{};
  if (!sink_) {
    Result<LineSink> opened = append_to(file_.string());
    if (!opened) return opened.error();
    sink_ = std::move(*opened);
  }
  const char* split = plan.split == Split::train ? "train" : "val";
  for (const Bad& b : bad) {
    const nlohmann::ordered_json line = {{"file", b.file},
                                         {"cause", b.cause},
                                         {"split", split},
                                         {"epoch", plan.epoch},
                                         {"batch", plan.in_phase},
                                         {"place", b.place},
                                         {"replacement", b.replacement}};
    if (Status written = sink_(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)); !written)
      return written;
  }
  std::uint64_t count = in_phase_;
  for (std::size_t i = 0; i < bad.size(); ++i) count += i == 0 || bad[i].place != bad[i - 1].place;
  // 0.29 of 100 is a hair below 29 in binary; no count lies between.
  if (static_cast<double>(count) <= max_share_ * static_cast<double>(images) + 1e-6) {
    in_phase_ = count;
    lines_ += bad.size();
    return Done{};
  }
  char share[32];
  std::snprintf(share, sizeof share, "%.3g %%",
                100.0 * static_cast<double>(count) / static_cast<double>(images));
  return Error{"data", file_.string(),
               std::to_string(count) + " of " + std::to_string(images) + " " + split + " images (" + share +
                   ") cannot be used, more than data.max_bad allows; the last: " + bad.back().file + ": " +
                   bad.back().cause,
               "mend or exclude the files listed there, or raise data.max_bad"};
}

}  // namespace sluice
