// One TOML value into the place of one key, or the reason why it does not fit.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>

#include "run/config/keys.hpp"

namespace sluice {

struct Misfit {
  std::string cause, hint;
};

// Leaves the config unchanged if the value does not fit.
[[nodiscard]] std::optional<Misfit> assign(const Key& key, const toml::node& value, Config& config);

}  // namespace sluice
