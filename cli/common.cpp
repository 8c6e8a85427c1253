#include "cli/common.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace sluice {

void complain(const Error& error) { std::cerr << "sluice: " + error.text() + "\n" << std::flush; }

int told(const Ending& ending) {
  if (ending.failure) complain(*ending.failure);
  return ending.code();
}

int with_output_written(int code) {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  const int reason = errno;
  if (written || code != exit_done) return code;
  // What could not be written is still in the buffer, so that the last try gives the reason again.
  std::string cause = "cannot be written";
  if (reason != 0) cause.append(": ").append(std::strerror(reason));
  complain({"output", "stdout", cause, "results are lost"});
  return exit_failed;
}

std::optional<Config> load_or_complain(const ConfigArguments& arguments) {
  Loaded loaded = load_config(arguments.file, arguments.sets);
  for (const Error& error : loaded.errors) complain(error);
  if (!loaded.errors.empty()) {
    if (loaded.errors.size() > 1)
      std::cerr << "sluice: " << loaded.errors.size() << " errors in the configuration\n";
    return std::nullopt;
  }
  return loaded.config;
}

}  // namespace sluice
