// Starts this host's ranks as processes of their own, passes on their output line by line with the rank in
// front, and ends them together: when one fails, and when it is told to stop.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "run/launch/seat.hpp"

namespace sluice {

struct LaunchOptions {
  Hosts hosts;
  std::vector<std::string> words;           // the command line of each rank
  std::string program = "/proc/self/exe";   // another one in tests
  std::chrono::milliseconds grace{30'000};  // for the others after one has failed: rank 0 may have to save
  int out = 1, err = 2;                     // where output goes
};

// Ranks that are all on this host get a secret of their own through their environment, and rank 0 a socket
// that listens on loopback already: the port cannot be taken by somebody else in between.
//
// The exit code: 0 if all ranks ended so, else that of the first that did not (128 + signal if it was
// killed). SIGINT, SIGTERM and SIGHUP are passed on to the ranks.
[[nodiscard]] int launch(const LaunchOptions& options);

// In a rank: whether launch() started it. If so, it gets SIGTERM when the launcher is gone.
bool follow_launcher(const Environment& environment);

}  // namespace sluice
