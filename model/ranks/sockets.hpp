// Sockets that a library opens and keeps to itself: which they are, and how to wake whoever waits on them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice {

struct Socket {
  int descriptor;
  ino_t inode;  // tells whether the descriptor is still this socket
  bool operator==(const Socket&) const = default;
};

// TCP sockets of this process that are connected now; all, or those to this port.
[[nodiscard]] std::vector<Socket> connected_sockets(std::optional<std::uint16_t> port = {});
[[nodiscard]] std::vector<Socket> without(std::vector<Socket> all, std::span<const Socket> some);
// Both directions end, and reads and writes under way fail. The descriptors stay open: they are their
// owner's.
void shut_down(std::span<const Socket> sockets);

// The address that this host has towards another one, which need not answer; empty if there is no way there.
[[nodiscard]] std::string local_address(const std::string& towards, std::uint16_t port);
[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace sluice
