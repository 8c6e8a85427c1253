#include "run/launch/rendezvous.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/free_port.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using Verdict = Checklist::Verdict;

namespace {

// A port of this host that somebody listens on.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(fd_, raw, size) == 0);
    REQUIRE(listen(fd_, 4) == 0);
    REQUIRE(getsockname(fd_, raw, &size) == 0);
    port = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  std::uint16_t port = 0;

 private:
  int fd_;
};

Environment rank(int number, const std::string& address, std::uint16_t port) {
  return {{"RANK", std::to_string(number)}, {"WORLD_SIZE", "2"},      {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},        {"MASTER_ADDR", address}, {"MASTER_PORT", std::to_string(port)}};
}

Checklist::Line looked(const Environment& environment) {
  Checklist list;
  look_at_rendezvous(list, environment, 2s);
  REQUIRE(list.lines().size() == 1);
  return list.lines().front();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("rendezvous: rank 0 needs a port that nobody has") {
  const Listener taken;
  const Checklist::Line refused = looked(rank(0, "127.0.0.1", taken.port));
  CHECK(refused.verdict == Verdict::fail);
  CHECK(has(refused.found, std::to_string(taken.port) + ": Address already in use"));
  CHECK(has(refused.hint, "MASTER_PORT"));
  CHECK(looked(rank(0, "127.0.0.1", test::free_port())).verdict == Verdict::ok);
}

TEST_CASE("rendezvous: rank 0 does not listen on an address that is not its own, unless told another") {
  Environment elsewhere = rank(0, "192.0.2.1", test::free_port());
  const Checklist::Line line = looked(elsewhere);
  CHECK(line.verdict == Verdict::fail);
  CHECK(has(line.found, "192.0.2.1 is not an address of this host"));
  CHECK(has(line.hint, "SLUICE_LISTEN"));
  elsewhere["SLUICE_LISTEN"] = "0.0.0.0";
  CHECK(looked(elsewhere).verdict == Verdict::ok);
}

TEST_CASE("rendezvous: the others need somebody who answers") {
  const Listener there;
  CHECK(looked(rank(1, "127.0.0.1", there.port)).verdict == Verdict::ok);
  const Checklist::Line nobody = looked(rank(1, "127.0.0.1", test::free_port()));
  CHECK(nobody.verdict == Verdict::warning);
  CHECK(has(nobody.hint, "before rank 0 has started"));
  const Checklist::Line unknown = looked(rank(1, "no such name", there.port));
  CHECK(unknown.verdict == Verdict::fail);
  CHECK(has(unknown.found, "no known host"));
}

TEST_CASE("rendezvous: hosts are judged like ranks, and a half-set environment fails") {
  const Listener there;
  Environment hosts = {{"NODE_RANK", "1"},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "127.0.0.1"},
                       {"MASTER_PORT", std::to_string(there.port)}};
  CHECK(looked(hosts).verdict == Verdict::ok);
  hosts["NODE_RANK"] = "0";
  CHECK(looked(hosts).verdict == Verdict::fail);
  hosts["MASTER_ADDR"] = "192.0.2.1";
  hosts["SLUICE_LISTEN"] = "127.0.0.1";
  hosts["MASTER_PORT"] = std::to_string(test::free_port());
  CHECK(looked(hosts).verdict == Verdict::ok);
  hosts.erase("MASTER_ADDR");
  CHECK(has(looked(hosts).found, "MASTER_ADDR"));
  CHECK(looked({{"RANK", "0"}}).verdict == Verdict::fail);
}

TEST_CASE("rendezvous: one process asks for none") {
  const Checklist::Line line = looked({});
  CHECK(line.verdict != Verdict::fail);
  CHECK(has(line.found, "not asked for"));
}
