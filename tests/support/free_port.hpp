// A TCP port that nobody has at the moment.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace sluice::test {

inline std::uint16_t free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(descriptor, raw, size) != 0 || getsockname(descriptor, raw, &size) != 0) std::abort();
  close(descriptor);
  return ntohs(address.sin_port);
}

}  // namespace sluice::test
