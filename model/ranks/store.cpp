#include "model/ranks/store.hpp"

#include <thread>

#include "model/ranks/heartbeat.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace sluice {

using namespace std::chrono_literals;

std::string shown(std::string text, const std::string& secret) {
  const std::string instead = "(secret)";
  if (!secret.empty())
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += instead.size())
      text.replace(at, secret.size(), instead);
  return told_by_peer(text);
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

c10::intrusive_ptr<c10d::Store> connect_store(const Seat& seat, const std::string& address,
                                              std::chrono::milliseconds timeout, Listener* listener) {
  c10d::TCPStoreOptions how;
  how.port = seat.port;
  how.isServer = listener != nullptr;
  if (listener) how.masterListenFd = listener->release();
  how.waitWorkers = false;
  how.timeout = timeout;
  const std::string secret = seat.secret.empty() ? "" : seat.secret + "/";
  return c10::make_intrusive<c10d::PrefixStore>("sluice/" + secret + seat.attempt,
                                                c10::make_intrusive<c10d::TCPStore>(address, how));
}

bool all_there(c10d::Store& store, const std::vector<std::string>& keys,
               std::chrono::steady_clock::time_point deadline, const std::function<bool()>& hopeless) {
  for (auto pause = 1ms; !store.check(keys); pause = std::min<std::chrono::milliseconds>(2 * pause, 50ms)) {
    if (std::chrono::steady_clock::now() > deadline || hopeless()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

std::string missing(c10d::Store& store, const std::vector<std::string>& keys) {
  std::string list;
  for (std::size_t rank = 0; rank < keys.size(); ++rank)
    if (!store.check({keys[rank]})) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

}  // namespace sluice
