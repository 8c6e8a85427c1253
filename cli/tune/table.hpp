// The trials of `sluice tune` as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/tune/search.hpp"

namespace sluice {

struct TuneReport {
  TuneSetting as_configured;
  std::vector<TrialRow> rows;
  std::uint64_t train_images = 0;
  double base_lr = 0;  // optim.lr, which is for a total batch of `base_batch`
  std::int64_t base_batch = 256;
  bool interrupted = false;
  std::string chosen = "balanced", written;  // `written`: the file; empty: none
};

[[nodiscard]] double tuned_lr(const TuneReport& report, const TuneSetting& setting);  // the run's peak
[[nodiscard]] std::string trial_line(const TuneReport& report, const TrialRow& row);  // while they go on
[[nodiscard]] std::string tune_text(const TuneReport& report);
[[nodiscard]] nlohmann::ordered_json tune_json(const TuneReport& report);

}  // namespace sluice
