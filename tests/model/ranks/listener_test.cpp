#include "model/ranks/listener.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/listeners.hpp"

using namespace sluice;

namespace {

bool listens_at(const std::string& place) {
  const auto all = test::listeners(getpid());
  return std::ranges::find(all, place) != all.end();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("listener: on the address of the name, and on no other") {
  for (const char* name : {"127.0.0.1", "127.0.0.5", "localhost"}) {
    CAPTURE(name);
    const auto made = listen_on(name, 0, Audience::other_hosts);
    REQUIRE(made);
    CHECK(made->port() > 0);
    CHECK(listens_at(made->address() + ":" + std::to_string(made->port())));
    CHECK(has(made->address(), "127.0.0."));
    CHECK_FALSE(listens_at("0.0.0.0:" + std::to_string(made->port())));
    CHECK_FALSE(listens_at("[::]:" + std::to_string(made->port())));
  }
  const auto all = listen_on("0.0.0.0", 0, Audience::other_hosts);
  REQUIRE(all);
  CHECK(all->address() == "127.0.0.1");
  CHECK(listens_at("0.0.0.0:" + std::to_string(all->port())));
}

TEST_CASE("listener: what cannot be listened on is named, with what to do") {
  const auto other = listen_on("192.0.2.1", 0, Audience::other_hosts);
  REQUIRE(!other);
  CHECK(has(other.error().text(), "192.0.2.1: is not an address of this host"));
  const auto unknown = listen_on("no such name", 0, Audience::this_host);
  REQUIRE(!unknown);
  CHECK(has(unknown.error().cause, "no known host"));
  const auto first = listen_on("127.0.0.1", 0, Audience::this_host);
  REQUIRE(first);
  const auto second = listen_on("127.0.0.1", first->port(), Audience::this_host);
  REQUIRE(!second);
  CHECK(has(second.error().cause, std::to_string(first->port()) + ": Address already in use"));
}

TEST_CASE("listener: a name that means loopback here is no place for other hosts") {
  const auto other = listen_on("ip6-localhost", 0, Audience::other_hosts);  // in Debian's /etc/hosts
  REQUIRE(!other);
  CHECK((has(other.error().cause, "where other hosts cannot reach it") ||
         has(other.error().cause, "no known host")));
}

TEST_CASE("listener: a socket from somebody else is taken over if it is what it should be") {
  auto made = listen_on("127.0.0.1", 0, Audience::this_host);
  REQUIRE(made);
  const std::uint16_t port = made->port();
  CHECK_FALSE(inherited_listener(made->descriptor(), static_cast<std::uint16_t>(port ^ 1)));
  CHECK_FALSE(inherited_listener(0, port));
  CHECK_FALSE(inherited_listener(12345, port));
  fcntl(made->descriptor(), F_SETFD, 0);
  const auto taken = inherited_listener(made->release(), port);
  REQUIRE(taken);
  CHECK(taken->address() == "127.0.0.1");
  CHECK(fcntl(taken->descriptor(), F_GETFD) == FD_CLOEXEC);
}
