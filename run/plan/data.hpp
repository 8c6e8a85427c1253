// How many images a plan counts with, and where that is from: the folders if they are there, what data.synth
// will make, else ImageNet's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "nodes/data_path.hpp"
#include "run/config/config.hpp"

namespace sluice {

struct PlanData {
  std::uint64_t train_images = 0, val_images = 0;
  std::int64_t classes = 0;
  std::size_t index_bytes = 0;
  std::string source;  // in words
};

struct ImageCounts {
  std::optional<std::uint64_t> train, val;  // given by hand
};

// Looks at the disk. Folders that are there and cannot be used are an error.
[[nodiscard]] Result<PlanData> plan_data(const Config& config, const ImageCounts& given = {});
// Of folders that have been looked at.
[[nodiscard]] PlanData data_of(const DataSets& sets);
// Does not: as if the folders were not there.
[[nodiscard]] PlanData assumed_data(const Config& config, const ImageCounts& given = {});

}  // namespace sluice
