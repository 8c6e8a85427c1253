// Finds the processes that `sluice train --devices N` has started.
#pragma once

#include <sys/types.h>

#include <cctype>
#include <string>

#include "tests/support/folder.hpp"

namespace sluice::test {

// The process that is this rank of the launcher's; 0 if there is none.
inline pid_t rank_process(pid_t launcher, int rank) {
  const auto has = [](const std::string& environment, const std::string& entry) {
    return ('\0' + environment).find('\0' + entry + '\0') != std::string::npos;
  };
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    const std::string environment = read_text(entry.path() / "environ");
    if (has(environment, "SLUICE_LAUNCHER=" + std::to_string(launcher)) &&
        has(environment, "RANK=" + std::to_string(rank)))
      return static_cast<pid_t>(std::stol(name));
  }
  return 0;
}

}  // namespace sluice::test
