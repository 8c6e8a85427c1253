#include "model/ranks/sockets.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "tests/support/free_port.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;

namespace {

// Both ends of a connection over loopback.
struct Connection {
  Connection() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(listener, raw, sizeof address) == 0);
    REQUIRE(listen(listener, 1) == 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(client, raw, sizeof address) == 0);
    server = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Connection() { close(client), close(server); }
  std::uint16_t port = test::free_port();
  int client = -1, server = -1;
};

}  // namespace

TEST_CASE("sockets: those of a connection are found, all or by the port they lead to") {
  const auto before = connected_sockets();
  const Connection connection;
  CHECK(without(connected_sockets(), before).size() == 2);
  const auto to_port = connected_sockets(connection.port);
  REQUIRE(to_port.size() == 1);
  CHECK(to_port[0].descriptor == connection.client);
}

TEST_CASE("sockets: a shut down wakes who waits, and leaves a socket alone that came in its place") {
  const test::Watchdog watchdog("sockets");
  std::vector<Socket> old;
  {
    const Connection connection;
    old = connected_sockets(connection.port);
    ssize_t got = -1;
    std::thread reader([&] {
      char byte = 0;
      got = read(connection.client, &byte, 1);
    });
    shut_down(old);
    reader.join();
    CHECK(got == 0);
  }
  const Connection next;
  shut_down({{{next.client, old[0].inode}}});
  CHECK(write(next.client, "x", 1) == 1);
}

TEST_CASE("sockets: the address towards another host") {
  CHECK(local_address("127.0.0.1", 1) == "127.0.0.1");
  CHECK(local_address("no such host", 1).empty());
  CHECK(is_loopback("127.0.1.1"));
  CHECK(is_loopback("::1"));
  CHECK(!is_loopback("10.0.0.1"));
}
