// The program behind a line of shell, for what only a shell can set up: limits, closed descriptors, mounts.
#pragma once

#include "tests/program/workshop.hpp"

namespace sluice::test {

// `script` runs in the workshop's folder and says where the program goes with "$@".
inline Ended in_shell(const Workshop& shop, const std::string& script, std::vector<std::string> words,
                      When when = {}) {
  words.insert(words.begin(), {"/bin/sh", "-c", script, "sh", std::getenv("SLUICE_BINARY")});
  return run_program(words, shop.folder.path(), std::move(when));
}

// Whether this process may make mount namespaces: root may, mostly.
inline bool can_mount() {
  return run_program({"/bin/sh", "-c", "unshare -m true 2>/dev/null"}, "/").code == 0;
}

// The records without what depends on the clock.
inline std::vector<std::string> timeless(const Workshop& shop, const std::string& run) {
  std::vector<std::string> lines;
  for (nlohmann::json record : shop.metrics(run)) {
    forget_clock(record);
    lines.push_back(record.dump());
  }
  return lines;
}

}  // namespace sluice::test
