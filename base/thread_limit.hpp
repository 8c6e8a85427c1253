// Why no more threads can be made. The kernel says "Resource temporarily unavailable" and means one of
// several limits; people need to know which, and how much it allows.
#pragma once

#include <exception>
#include <string>

#include "base/result.hpp"

namespace sluice {

// The limit that is met, or the one that is nearest, in words. `root` is put before /proc and /sys, for
// tests.
[[nodiscard]] std::string thread_limit(const std::string& root = "");

// What an exception says; of a thread that could not be made, which limit is in its way.
[[nodiscard]] Error as_error(const std::string& stage, const std::exception& exception);

// Makes so many threads at once and lets them go: libraries that cannot make theirs end the process, without
// a word about the reason.
[[nodiscard]] Status can_make_threads(unsigned count);

}  // namespace sluice
