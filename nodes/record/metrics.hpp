// What a run measures, one JSON object a line (metrics.jsonl). Numbers read back bit for bit; what JSON
// cannot say (NaN, infinity) becomes null and is named in "non_finite".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/values.hpp"

namespace sluice {

struct Record {
  std::string event;  // "train", "val", "epoch", "end", ...
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // optimiser steps since the beginning of the run
  Values values = {};
  std::vector<std::pair<std::string, std::string>> texts = {};  // such as the reason of an "end"
};

// Without the end of line. The keys' order is fixed: event, epoch, step, the metrics of the design's list,
// other metrics as given, texts, non_finite.
[[nodiscard]] std::string json_line(const Record& record);

}  // namespace sluice
