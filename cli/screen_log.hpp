// Progress and messages on stderr alone, for commands that leave no run behind.
#pragma once

#include <memory>

#include "nodes/log.hpp"

namespace sluice {

[[nodiscard]] std::unique_ptr<Log> screen_log();

}  // namespace sluice
