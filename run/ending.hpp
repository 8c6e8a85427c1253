// How a command ends: its exit code, and an error that it ends with.
#pragma once

#include "base/result.hpp"

namespace sluice {

enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2 };

void complain(const Error& error);  // "sluice: ..." on stderr

}  // namespace sluice
