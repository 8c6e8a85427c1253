// The learning rate over a run: linear warm-up to the peak, then a cosine down to zero at the last point (or
// constant). A point is an epoch or a step, as `interval` says; the curve is the same on either axis.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

struct ScheduleOptions {
  std::string kind = "constant";   // "cosine" or "constant" (both warm up)
  std::string interval = "epoch";  // "epoch": one rate per epoch; "step": a new rate each step
  double lr = 0;                   // for a total batch of base_batch
  std::int64_t total_batch = 1;    // images per optimiser step, all devices together
  std::int64_t base_batch = 1;
  std::int64_t epochs = 1;
  std::int64_t warmup_epochs = 0;
  double warmup_start = 0;  // share of the peak at the first point
};

[[nodiscard]] double peak_rate(const ScheduleOptions& options);
[[nodiscard]] double learning_rate(const ScheduleOptions& options, std::int64_t epoch, std::int64_t step,
                                   std::int64_t steps_per_epoch);

}  // namespace sluice
