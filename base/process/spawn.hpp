// Starts a program as a process of its own: the one place that does. Never by fork: a process that has
// threads and libraries like ours cannot go on after one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct SpawnOptions {
  std::string program = {};  // a path; a name without "/" is looked for in PATH
  std::vector<std::string> words = {};
  std::optional<std::vector<std::string>> environment = {};  // "NAME=value"; none: this process's own

  // Open file `here` is `there` in the child. One that keeps its number stays open although it is O_CLOEXEC.
  struct Passed {
    int here, there;
  };
  std::vector<Passed> descriptors = {};
  std::filesystem::path folder = {};      // where it starts; empty: here
  bool own_group = false;                 // Ctrl-C on the terminal is not for it
  std::vector<int> default_signals = {};  // these do what they do by default, whatever this process does
};

struct Spawned {
  pid_t pid = 0;
  int error = 0;  // an error number, and then there is no process
};

[[nodiscard]] Spawned spawn(const SpawnOptions& options);

// As a shell gives it: the exit code, or 128 + the signal that ended it. `status` is waitpid's.
[[nodiscard]] int exit_code(int status);

}  // namespace sluice
