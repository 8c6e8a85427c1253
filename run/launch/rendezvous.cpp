#include "run/launch/rendezvous.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/descriptor.hpp"
#include "model/ranks/listener.hpp"

namespace sluice {
namespace {

int open_socket(int family, int more = 0) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | more, 0); }

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& name, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, found ? freeaddrinfo : [](addrinfo*) {}};
}

Reach try_one(const addrinfo& at, std::chrono::milliseconds patience) {
  const Descriptor fd(open_socket(at.ai_family, SOCK_NONBLOCK));
  if (fd.get() < 0) return Reach::no_route;
  int error = connect(fd.get(), at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{fd.get(), POLLOUT, 0};
    if (poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return Reach::silent;
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  switch (error) {
    case 0:
      return Reach::connected;
    case ECONNREFUSED:
      return Reach::refused;
    case ETIMEDOUT:
      return Reach::silent;
    default:
      return Reach::no_route;
  }
}

void look_at_port(Checklist& list, const std::string& who, const std::string& name, std::uint16_t port,
                  Audience audience) {
  const Result<Listener> tried = listen_on(name, port, audience);
  if (!tried)
    return list.fail("rendezvous", who + ": " + tried.error().subject + " " + tried.error().cause,
                     tried.error().hint);
  list.ok("rendezvous", who + " can listen on " + name + " port " + std::to_string(port));
}

void look_at_way(Checklist& list, const std::string& who, const std::string& address, std::uint16_t port,
                 std::chrono::milliseconds patience) {
  const std::string there = address + " port " + std::to_string(port);
  switch (reach(address, port, patience)) {
    case Reach::connected:
      return list.ok("rendezvous", who + ": " + there + " answers");
    case Reach::refused:
      return list.warn(
          "rendezvous",
          who + ": " + address + " is there, but nobody listens on port " + std::to_string(port) + " yet",
          "fine before rank 0 has started; else check MASTER_PORT");
    case Reach::silent:
      return list.fail("rendezvous", who + ": no answer from " + there,
                       "check MASTER_ADDR, and that no firewall is between the hosts");
    case Reach::no_such_name:
      return list.fail("rendezvous", who + ": MASTER_ADDR " + address + " is no known host",
                       "check the name or DNS");
    case Reach::no_route:
      return list.fail("rendezvous", who + ": there is no way to " + there, "check the network of this host");
  }
}

}  // namespace

Reach reach(const std::string& name, std::uint16_t port, std::chrono::milliseconds patience) {
  const Addresses found = resolve(name, port);
  if (!found) return Reach::no_such_name;
  Reach best = Reach::no_route;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    const Reach here = try_one(*at, patience);
    if (here < best) best = here;
    if (best == Reach::connected) break;
  }
  return best;
}

void look_at_rendezvous(Checklist& list, const Environment& environment, std::chrono::milliseconds patience) {
  const Result<std::optional<Seat>> seat = seat_from(environment);
  if (!seat) return list.fail("rendezvous", seat.error());
  if (*seat) {
    const Seat& p = **seat;
    const std::string who = "rank " + std::to_string(p.rank) + " of " + std::to_string(p.world);
    return p.first() && !p.store_elsewhere
               ? look_at_port(list, who, p.listen.empty() ? p.address : p.listen, p.port,
                              p.all_on_this_host() ? Audience::this_host : Audience::other_hosts)
               : look_at_way(list, who, p.address, p.port, patience);
  }
  const Result<Hosts> hosts = hosts_from(environment, {});
  if (!hosts) return list.fail("rendezvous", hosts.error());
  if (hosts->nodes > 1) {
    const std::string who =
        "host " + std::to_string(hosts->node_rank) + " of " + std::to_string(hosts->nodes);
    const auto listen = environment.find("SLUICE_LISTEN");
    const std::string& name =
        listen == environment.end() || listen->second.empty() ? hosts->address : listen->second;
    return hosts->node_rank == 0 ? look_at_port(list, who, name, hosts->port, Audience::other_hosts)
                                 : look_at_way(list, who, hosts->address, hosts->port, patience);
  }
  list.ok("rendezvous", "not asked for (no RANK, no NODE_RANK)");
}

}  // namespace sluice
