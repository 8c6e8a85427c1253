// The socket on which ranks find each other. It listens on one address of this host, and on no other: whoever
// reaches it can talk to the store.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace sluice {

// Owns a socket that listens.
class Listener {
 public:
  Listener(int descriptor, std::string address, std::uint16_t port)
      : descriptor_(descriptor), address_(std::move(address)), port_(port) {}
  Listener(Listener&& other) noexcept
      : descriptor_(other.release()), address_(std::move(other.address_)), port_(other.port_) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Where this host reaches it: the address that it listens on, or loopback if it listens on all.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }  // another owner closes it

 private:
  int descriptor_;
  std::string address_;
  std::uint16_t port_;
};

enum class Audience { this_host, other_hosts };

// On the address that `name` stands for, which must be this host's; port 0: any that is free. A name that
// means nothing but loopback here is no place for other hosts, unless it says so itself (127.0.0.1,
// localhost).
[[nodiscard]] Result<Listener> listen_on(const std::string& name, std::uint16_t port, Audience audience);

// A socket that somebody else has made to listen on this port, and has left to this process.
[[nodiscard]] Result<Listener> inherited_listener(int descriptor, std::uint16_t port);

}  // namespace sluice
