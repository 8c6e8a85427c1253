#include "model/train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

// The share of the peak at `point` of 0..total-1, of which the first `warmup` points climb. The climb's last
// point is the peak, and so is the cosine's first: a schedule by epochs stays there for two of them.
double share(std::int64_t point, std::int64_t warmup, std::int64_t total, double start, bool cosine) {
  if (point < warmup) {
    if (warmup == 1) return start;
    return start + (1.0 - start) * static_cast<double>(point) / static_cast<double>(warmup - 1);
  }
  const std::int64_t length = total - 1 - warmup;
  if (!cosine || length <= 0) return 1.0;
  if (point >= total - 1) return 0.0;
  const double done = static_cast<double>(point - warmup) / static_cast<double>(length);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

}  // namespace

double peak_rate(const ScheduleOptions& options) {
  return options.lr * static_cast<double>(options.total_batch) / static_cast<double>(options.base_batch);
}

double learning_rate(const ScheduleOptions& options, std::int64_t epoch, std::int64_t step,
                     std::int64_t steps_per_epoch) {
  const bool by_step = options.interval == "step";
  const std::int64_t unit = by_step ? std::max<std::int64_t>(steps_per_epoch, 1) : 1;
  const std::int64_t point = epoch * unit + (by_step ? step : 0);
  return peak_rate(options) * share(point, options.warmup_epochs * unit, options.epochs * unit,
                                    options.warmup_start, options.kind == "cosine");
}

}  // namespace sluice
