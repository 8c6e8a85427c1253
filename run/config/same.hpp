// Whether the configurations of two ranks train the same network the same way.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sluice {

// Both as to_toml gives them. Where data is, and what a host spends on it, may differ (data.train, data.val,
// data.synth, [budget], [pipeline], [log] but for log.every, train.threads). `who` stands for the owner of
// `own` in the error.
[[nodiscard]] Status same_training(std::string_view own, std::string_view of_first, const std::string& who);

}  // namespace sluice
