// Where a process stands among those that train one network together.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

struct Seat {
  int rank = 0, world = 1;              // among all
  int local_rank = 0, local_world = 1;  // on this host
  std::string address = "127.0.0.1";    // of the store, where ranks find each other
  std::uint16_t port = 29500;
  bool store_elsewhere = false;  // torchrun keeps it; else rank 0 does
  std::string attempt = "0";     // what a run before a restart left in the store means nothing to this one
  std::string secret;  // known to the ranks alone, and in front of every key of the store; may be empty
  std::string listen;  // of rank 0: where the store listens, if that is not `address`
  int listener = -1;   // of rank 0: a socket that listens already, from the launcher

  [[nodiscard]] bool alone() const { return world == 1; }
  [[nodiscard]] bool all_on_this_host() const { return local_world == world; }
  [[nodiscard]] bool first() const { return rank == 0; }
};

}  // namespace sluice
