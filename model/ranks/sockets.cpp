#include "model/ranks/sockets.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

namespace sluice {
namespace {

// Of the other side; nothing where this is no TCP socket, or not connected.
std::optional<std::uint16_t> peer_port(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::nullopt;
  int type = 0;
  socklen_t length = sizeof type;
  getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length);
  if (type != SOCK_STREAM) return std::nullopt;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return std::nullopt;
}

bool still(const Socket& socket) {
  struct stat now {};
  return fstat(socket.descriptor, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_ino == socket.inode;
}

}  // namespace

std::vector<Socket> connected_sockets(std::optional<std::uint16_t> port) {
  std::vector<Socket> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    struct stat about {};
    if (fstat(descriptor, &about) != 0 || !S_ISSOCK(about.st_mode)) continue;
    const auto peer = peer_port(descriptor);
    if (!peer || (port && peer != port)) continue;
    found.push_back({descriptor, about.st_ino});
  }
  return found;
}

std::vector<Socket> without(std::vector<Socket> all, std::span<const Socket> some) {
  std::erase_if(all, [&](const Socket& socket) { return std::ranges::find(some, socket) != some.end(); });
  return all;
}

void shut_down(std::span<const Socket> sockets) {
  for (const Socket& socket : sockets)
    if (still(socket)) shutdown(socket.descriptor, SHUT_RDWR);
}

std::string local_address(const std::string& towards, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;  // connecting sends nothing
  addrinfo* found = nullptr;
  if (getaddrinfo(towards.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int descriptor = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (descriptor < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = "";
    const bool known = connect(descriptor, at->ai_addr, at->ai_addrlen) == 0 &&
                       getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
                       getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                                   NI_NUMERICHOST) == 0;
    close(descriptor);
    if (known) return text;
  }
  return "";
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace sluice
