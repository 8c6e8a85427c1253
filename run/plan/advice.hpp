// What would make a configuration fit: every change is tried on the plan before it is advised, so that the
// one who follows it is not refused again.
#pragma once

#include <functional>
#include <string>

#include "run/config/config.hpp"

namespace sluice {

using Fits = std::function<bool(const Config&)>;

// Words for a hint, of a configuration that does not fit. A batch that it names fits, and the next one does
// not; where no batch does, a smaller image or network. Empty if there is nothing that helps.
[[nodiscard]] std::string what_to_change(const Config& config, const Fits& fits);

}  // namespace sluice
