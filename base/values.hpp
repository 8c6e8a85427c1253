// Figures by name.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

// "train/loss" and its value, in the order of giving.
using Values = std::vector<std::pair<std::string, double>>;

}  // namespace sluice
