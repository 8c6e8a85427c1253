#include "model/ranks/listener.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "model/ranks/sockets.hpp"

namespace sluice {
namespace {

constexpr const char* other_address = "SLUICE_LISTEN names another address of rank 0's host (0.0.0.0: all)";

std::string text_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

struct Bound {
  std::string address;
  std::uint16_t port = 0;
};

Bound bound_to(int descriptor) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  const std::string address = text_of(reinterpret_cast<const sockaddr*>(&own), size);
  if (own.ss_family == AF_INET6)
    return {address == "::" ? "::1" : address, ntohs(reinterpret_cast<const sockaddr_in6&>(own).sin6_port)};
  return {address == "0.0.0.0" ? "127.0.0.1" : address,
          ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port)};
}

// A descriptor, or the negative error number.
int listen_at(const addrinfo& at) {
  const int descriptor = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  const int on = 1;  // the port of a run that has just ended is free
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(descriptor, at.ai_addr, at.ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0)
    return descriptor;
  const int error = errno;
  close(descriptor);
  return -error;
}

bool says_loopback(const std::string& name) { return name == "localhost" || is_loopback(name); }

}  // namespace

Listener::~Listener() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Listener> listen_on(const std::string& name, std::uint16_t port, Audience audience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return Error{"ranks", name, "is no known host", "check MASTER_ADDR, or DNS"};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<const addrinfo*> all;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) all.push_back(at);
  const auto loopback = [](const addrinfo* at) { return is_loopback(text_of(at->ai_addr, at->ai_addrlen)); };
  if (audience == Audience::other_hosts && !says_loopback(name)) {
    if (std::ranges::all_of(all, loopback))
      return Error{"ranks", name,
                   "means " + text_of(found->ai_addr, found->ai_addrlen) +
                       " on this host, where other hosts cannot reach it",
                   std::string("set MASTER_ADDR to this host's address in the network; or ") + other_address};
    std::erase_if(all, loopback);
  }
  // The store listens on one address. Hosts that try both kinds find it on either, others know IPv4.
  std::stable_partition(all.begin(), all.end(), [](const addrinfo* at) { return at->ai_family == AF_INET; });
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at : all) {
    const int descriptor = listen_at(*at);
    if (descriptor >= 0) {
      const Bound bound = bound_to(descriptor);
      return Listener(descriptor, bound.address, bound.port);
    }
    if (error == EADDRNOTAVAIL) error = -descriptor;
  }
  if (error == EADDRNOTAVAIL)
    return Error{
        "ranks", name, "is not an address of this host, where rank 0 is to listen",
        std::string("set MASTER_ADDR to this host, or start rank 0 there; behind NAT ") + other_address};
  return Error{"ranks", name, "cannot listen on port " + std::to_string(port) + ": " + std::strerror(error),
               "end what has it (ss -ltnp 'sport = :" + std::to_string(port) +
                   "'), or set MASTER_PORT to another on all hosts"};
}

Result<Listener> inherited_listener(int descriptor, std::uint16_t port) {
  int listens = 0;
  socklen_t size = sizeof listens;
  const bool there = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
  const Bound bound = there ? bound_to(descriptor) : Bound{};
  if (!there || bound.port != port)
    return Error{"ranks", "descriptor " + std::to_string(descriptor),
                 "is no socket that listens on port " + std::to_string(port), "unset SLUICE_LISTEN_FD"};
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return Listener(descriptor, bound.address, bound.port);
}

}  // namespace sluice
