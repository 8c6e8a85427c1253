// Whether the configurations of two ranks train the same network the same way.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sluice {

// Both as to_toml gives them. Keys that concern a host alone (Key::local: where data is, and what is spent on
// it) may differ. `who` stands for the owner of `own` in the error.
[[nodiscard]] Status same_training(std::string_view own, std::string_view of_first, const std::string& who);

}  // namespace sluice
