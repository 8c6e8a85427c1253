// The figures of a phase, by name, from its sums: the same for the record of a run and for `sluice eval`.
#pragma once

#include <string>

#include "model/train/train_step.hpp"
#include "nodes/record/metrics.hpp"

namespace sluice {

// <prefix>loss, <prefix>acc1, <prefix>acc5. Where no image could be used, there is none of them: a loss of
// zero would be the best there is. Accuracy of images that were mixed with others means nothing: where no
// image was judged, it is left out.
[[nodiscard]] inline Values figures(const std::string& prefix, const PhaseSums& s) {
  const auto mean = [](double sum, std::int64_t count) { return sum / static_cast<double>(count); };
  Values values;
  if (s.count > 0) values.emplace_back(prefix + "loss", mean(s.loss, s.count));
  if (s.judged > 0) {
    values.emplace_back(prefix + "acc1", 100 * mean(static_cast<double>(s.correct1), s.judged));
    values.emplace_back(prefix + "acc5", 100 * mean(static_cast<double>(s.correct5), s.judged));
  }
  return values;
}

}  // namespace sluice
