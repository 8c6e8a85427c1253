// Runs a program as a process of its own and tells how it ended.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace sluice {

struct ChildOptions {
  std::vector<std::string> words;
  std::string program = "/proc/self/exe";             // or a name that PATH has
  std::chrono::milliseconds limit{60'000};            // then it is killed
  std::function<bool()> stop = [] { return false; };  // asked ten times a second; true: it is killed
};

struct ChildEnd {
  int code = -1;  // as a shell gives it: 128 + signal if it was killed
  std::string out, err;
  std::size_t peak_rss = 0;  // bytes
  bool too_long = false, stopped = false;
};

// If the program cannot be started, code is -1 and err says why.
[[nodiscard]] ChildEnd run_child(const ChildOptions& options);

}  // namespace sluice
