// Where a process stands among the others, from what its environment and the command line say. Pure: the
// environment is a map.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "model/ranks/seat.hpp"

namespace sluice {

using Environment = std::map<std::string, std::string>;

// From the launcher to rank 0: the number of the descriptor that is Seat::listener.
inline constexpr const char* listener_variable = "SLUICE_LISTEN_FD";

[[nodiscard]] Environment this_environment();

// What the command line asks for; nothing where it is silent.
struct LaunchArguments {
  std::optional<int> devices, nodes, node_rank;
};

// The seat of a process that a launcher has started as one rank of many, as torchrun does: RANK, LOCAL_RANK,
// LOCAL_WORLD_SIZE, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, all or none. Nothing if RANK is not set. Ranks
// that are all on one host meet on its loopback address, whatever MASTER_ADDR says, unless torchrun keeps the
// store or SLUICE_LISTEN asks for another address.
[[nodiscard]] Result<std::optional<Seat>> seat_from(const Environment& environment);

// The hosts of a run whose ranks this process is to start.
struct Hosts {
  int devices = 1;  // ranks on this host, and on every other
  int nodes = 1, node_rank = 0;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
  std::string secret;      // as in Seat
  [[nodiscard]] int world() const { return devices * nodes; }
};

// Without RANK: NODE_RANK, MASTER_ADDR and MASTER_PORT, and WORLD_SIZE as the number of hosts. The command
// line wins.
[[nodiscard]] Result<Hosts> hosts_from(const Environment& environment, const LaunchArguments& asked);

// What to warn of before ranks of several hosts meet; empty if there is nothing.
[[nodiscard]] std::string trust_warning(const Seat& seat);

// What rank `local` of this host finds in its environment.
[[nodiscard]] Environment rank_environment(const Hosts& hosts, int local);

}  // namespace sluice
