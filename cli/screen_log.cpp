#include "cli/screen_log.hpp"

#include <unistd.h>

#include <iostream>

namespace sluice {

std::unique_ptr<Log> screen_log() {
  LogOptions options;
  options.screen = &std::cerr;
  options.terminal = isatty(STDERR_FILENO) == 1;
  options.width = [] { return terminal_width(STDERR_FILENO); };
  return std::make_unique<Log>(std::move(options));
}

}  // namespace sluice
