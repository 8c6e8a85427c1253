// One trial of `tune`, in a process of its own.
#pragma once

#include "run/config/config.hpp"

namespace sluice {

// Trains for so many seconds and prints the figures as a line of JSON; with 0, only what the device has.
[[nodiscard]] int tune_trial(const ConfigArguments& arguments, double seconds);

}  // namespace sluice
