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

// What a process was started with; empty if there is no such variable.
inline std::string variable_of(pid_t process, const std::string& name) {
  const std::string all =
      '\0' + read_text(std::filesystem::path("/proc") / std::to_string(process) / "environ") + '\0';
  const std::size_t at = all.find('\0' + name + "=");
  if (at == std::string::npos) return "";
  const std::size_t from = at + name.size() + 2;
  return all.substr(from, all.find('\0', from) - from);
}

}  // namespace sluice::test
