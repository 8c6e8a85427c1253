// Somebody who is no rank of a run and talks to its store all the same, in the protocol of c10d's TCPStore
// (numbers in the host's order, texts after their length in 8 bytes). And peers who do not talk at all.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::test {

class Stranger {
 public:
  Stranger(const std::string& address, std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    inet_pton(AF_INET, address.c_str(), &to.sin_addr);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    timeval patience{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    send(std::string(1, '\0') + number(std::uint32_t{0x3C85F7CE}));
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  void set(const std::string& key, const std::string& value) { send('\1' + text(key) + text(value)); }
  // Empty if there is no such key.
  std::string get(const std::string& key) {
    send('\5' + number(std::uint64_t{1}) + text(key));
    if (receive(1) != std::string(1, '\0')) return "";
    send('\3' + text(key));
    const std::string size = receive(8);
    std::uint64_t length = 0;
    if (size.size() != sizeof length) return "";
    std::memcpy(&length, size.data(), sizeof length);
    return receive(length);
  }

 private:
  template <class Number>
  static std::string number(Number value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string text(const std::string& value) {
    return number(static_cast<std::uint64_t>(value.size())) + value;
  }
  void send(const std::string& bytes) const { ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  [[nodiscard]] std::string receive(std::size_t count) const {
    std::string got(count, '\0');
    const ssize_t n = recv(fd_, got.data(), count, MSG_WAITALL);
    got.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return got;
  }

  int fd_;
  bool connected_ = false;
};

// Listens on a port of this host, and is no store.
class NoStore {
 public:
  enum class Manner {
    silent,        // takes connections and says nothing
    hanging_up,    // takes them and ends them at once
    silent_later,  // greets as a store does, and says nothing from then on
  };
  explicit NoStore(Manner manner) : manner_(manner), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd_, raw, size) != 0 || listen(fd_, 16) != 0 || getsockname(fd_, raw, &size) != 0) std::abort();
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~NoStore() {
    over_ = true;
    thread_.join();
    close(fd_);
  }
  NoStore(const NoStore&) = delete;
  NoStore& operator=(const NoStore&) = delete;
  std::uint16_t port = 0;
  [[nodiscard]] int visitors() const { return visitors_; }

 private:
  struct Visitor {
    int fd;
    std::string said;
    bool greeted = false;
  };

  void serve() {
    std::vector<Visitor> visitors;
    while (!over_) {
      std::vector<pollfd> fds{{fd_, POLLIN, 0}};
      for (const Visitor& visitor : visitors) fds.push_back({visitor.fd, POLLIN, 0});
      poll(fds.data(), fds.size(), 20);
      for (std::size_t i = 0; i < visitors.size(); ++i)
        if (fds[i + 1].revents != 0) hear(visitors[i]);
      if (fds[0].revents == 0) continue;
      const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++visitors_;
      manner_ == Manner::hanging_up ? void(close(fd)) : visitors.push_back({fd, ""});
    }
    for (const Visitor& visitor : visitors) close(visitor.fd);
  }

  // A visitor says a byte 0 and a magic number, then a byte and a number that it wants to hear back.
  void hear(Visitor& visitor) const {
    char bytes[256];
    const ssize_t n = recv(visitor.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) visitor.said.append(bytes, static_cast<std::size_t>(n));
    if (manner_ != Manner::silent_later || visitor.greeted || visitor.said.size() < 10) return;
    visitor.greeted = send(visitor.fd, visitor.said.data() + 6, 4, MSG_NOSIGNAL) == 4;
  }

  const Manner manner_;
  int fd_;
  std::atomic<bool> over_ = false;
  std::atomic<int> visitors_ = 0;
  std::thread thread_;
};

}  // namespace sluice::test
