// Rules between keys: values that are fine alone and make no sense together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/config/config.hpp"

namespace sluice {

struct Rule {
  std::vector<std::string_view> keys;  // the keys compared; the first one gets the blame
  bool (*broken)(const Config&);
  std::string_view cause, hint;
};

[[nodiscard]] std::span<const Rule> config_rules();

}  // namespace sluice
