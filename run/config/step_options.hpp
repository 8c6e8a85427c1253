// What a configuration tells the training step.
#pragma once

#include "model/train/schedule.hpp"
#include "model/train/train_step.hpp"
#include "run/config/config.hpp"

namespace sluice {

[[nodiscard]] Task task_of(const Config& config);

[[nodiscard]] StepOptions step_options(const Config& config, int classes, const std::string& device,
                                       unsigned threads);
[[nodiscard]] MixOptions mix_options(const Config& config);
// `ranks`: how many there are; each has a batch of its own.
[[nodiscard]] ScheduleOptions schedule_options(const Config& config, std::int64_t ranks = 1);

}  // namespace sluice
