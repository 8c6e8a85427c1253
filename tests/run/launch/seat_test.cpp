#include "run/launch/seat.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

const Environment torchrun = {{"RANK", "5"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"WORLD_SIZE", "8"},
                              {"MASTER_ADDR", "node0"},
                              {"MASTER_PORT", "29511"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RESTART_COUNT", "2"}};

Environment with(Environment e, const std::string& name, const std::string& value) {
  e[name] = value;
  return e;
}

Environment without(Environment e, const std::string& name) {
  e.erase(name);
  return e;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("seat: what torchrun says") {
  const auto p = seat_from(torchrun);
  REQUIRE(p);
  REQUIRE(*p);
  const Seat& seat = **p;
  CHECK(seat.rank == 5);
  CHECK(seat.world == 8);
  CHECK(seat.local_rank == 1);
  CHECK(seat.local_world == 4);
  CHECK(seat.address == "node0");
  CHECK(seat.port == 29511);
  CHECK(seat.store_elsewhere);
  CHECK(seat.attempt == "2");
  CHECK_FALSE((*seat_from(with(torchrun, "TORCHELASTIC_USE_AGENT_STORE", "False")))->store_elsewhere);
  const auto by_hand =
      seat_from(without(without(torchrun, "TORCHELASTIC_USE_AGENT_STORE"), "TORCHELASTIC_RESTART_COUNT"));
  CHECK_FALSE((*by_hand)->store_elsewhere);
  CHECK((*by_hand)->attempt == "0");
}

TEST_CASE("seat: ranks that are all on one host meet on loopback, unless told otherwise") {
  Environment local = without(with(torchrun, "WORLD_SIZE", "4"), "TORCHELASTIC_USE_AGENT_STORE");
  local["RANK"] = "1";
  CHECK((*seat_from(local))->address == "127.0.0.1");
  CHECK((*seat_from(with(local, "TORCHELASTIC_USE_AGENT_STORE", "True")))->address == "node0");
  const auto told = seat_from(with(local, "SLUICE_LISTEN", "0.0.0.0"));
  CHECK((*told)->address == "node0");
  CHECK((*told)->listen == "0.0.0.0");
  CHECK((*seat_from(with(local, "SLUICE_LISTEN_FD", "7")))->listener == 7);
  CHECK((*seat_from(local))->listener == -1);
  CHECK_FALSE(seat_from(with(local, "SLUICE_LISTEN_FD", "x")));
}

TEST_CASE("seat: a secret comes from the environment, and hosts without one are warned of") {
  const auto open = seat_from(torchrun);
  CHECK((*open)->secret.empty());
  CHECK(has(trust_warning(**open), "SLUICE_SECRET"));
  CHECK(has(trust_warning(**open), "node0 port 29511"));
  const std::string secret = "0123456789abcdef";
  const auto shared = seat_from(with(torchrun, "SLUICE_SECRET", secret));
  CHECK((*shared)->secret == secret);
  CHECK(trust_warning(**shared).empty());
  CHECK((*seat_from(with(torchrun, "TORCHELASTIC_RUN_ID", "job7")))->attempt == "job7/2");
  for (const std::string& bad : {std::string("short"), secret + "\n", secret + "/a", std::string(257, 'a')}) {
    CAPTURE(bad);
    const auto p = seat_from(with(torchrun, "SLUICE_SECRET", bad));
    REQUIRE_FALSE(p);
    CHECK_FALSE(has(p.error().text(), bad));  // it is not shown
  }
  const Environment node = {
      {"NODE_RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "node0"}, {"SLUICE_SECRET", secret}};
  const auto hosts = hosts_from(node, {});
  REQUIRE(hosts);
  CHECK((*seat_from(rank_environment(*hosts, 0)))->secret == secret);
  CHECK_FALSE(hosts_from(with(node, "SLUICE_SECRET", "short"), {}));
}

TEST_CASE("seat: without RANK there is none") {
  for (const Environment& e : {Environment{}, without(torchrun, "RANK"), with(torchrun, "RANK", "")}) {
    const auto p = seat_from(e);
    REQUIRE(p);
    CHECK_FALSE(*p);
  }
}

TEST_CASE("seat: a variable that is missing or makes no sense is named") {
  for (const char* name : {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    CAPTURE(name);
    for (const Environment& e : {without(torchrun, name), with(torchrun, name, "")}) {
      const auto p = seat_from(e);
      REQUIRE_FALSE(p);
      CHECK(has(p.error().text(), "launch: " + std::string(name) + ": is not set"));
    }
  }
  const std::pair<const char*, const char*> wrong[] = {{"RANK", "8"},
                                                       {"RANK", "-1"},
                                                       {"RANK", "two"},
                                                       {"RANK", "1 "},
                                                       {"LOCAL_RANK", "4"},
                                                       {"LOCAL_WORLD_SIZE", "9"},
                                                       {"LOCAL_WORLD_SIZE", "0"},
                                                       {"WORLD_SIZE", "0"},
                                                       {"MASTER_PORT", "0"},
                                                       {"MASTER_PORT", "65536"},
                                                       {"WORLD_SIZE", "99999999999999"}};
  for (const auto& [name, value] : wrong) {
    CAPTURE(name);
    CAPTURE(value);
    const auto p = seat_from(with(torchrun, name, value));
    REQUIRE_FALSE(p);
    CHECK(has(p.error().text(), "launch: " + std::string(name) + ": is \"" + value + "\""));
  }
}

TEST_CASE("hosts: alone unless told otherwise") {
  const auto alone = hosts_from({}, {});
  REQUIRE(alone);
  CHECK(alone->world() == 1);
  const auto four = hosts_from({}, {4, {}, {}});
  REQUIRE(four);
  CHECK(four->world() == 4);
  CHECK(four->address == "127.0.0.1");
  CHECK(four->port == 0);
  // Where the store would be says nothing about how many there are.
  CHECK(hosts_from({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1"}}, {})->world() == 1);
}

TEST_CASE("hosts: NODE_RANK and WORLD_SIZE count hosts, and the command line wins") {
  const Environment lightning = {{"NODE_RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "node0"}};
  const auto told = hosts_from(lightning, {2, {}, {}});
  REQUIRE(told);
  CHECK(told->nodes == 3);
  CHECK(told->node_rank == 1);
  CHECK(told->world() == 6);
  CHECK(told->address == "node0");
  CHECK(told->port == 29500);
  CHECK(hosts_from(with(lightning, "MASTER_PORT", "1234"), {})->port == 1234);
  const auto asked = hosts_from(lightning, {2, 4, 3});
  REQUIRE(asked);
  CHECK(asked->nodes == 4);
  CHECK(asked->node_rank == 3);
}

TEST_CASE("hosts: half of it is refused by name") {
  const auto refused = [](const Environment& e, const LaunchArguments& asked, const std::string& part) {
    const auto hosts = hosts_from(e, asked);
    REQUIRE_FALSE(hosts);
    INFO(hosts.error().text());
    CHECK(has(hosts.error().text(), part));
  };
  refused({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, {}, "launch: NODE_RANK: is not set");
  refused({{"NODE_RANK", "0"}, {"MASTER_ADDR", "a"}}, {}, "launch: WORLD_SIZE: is not set");
  refused({{"NODE_RANK", "0"}, {"WORLD_SIZE", "2"}}, {}, "launch: MASTER_ADDR: is not set");
  refused({{"NODE_RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, {}, "launch: NODE_RANK: is \"2\"");
  refused({{"NODE_RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}, {},
          "launch: MASTER_PORT: is \"x\"");
  refused({}, {1, 2, 2}, "launch: --node-rank: is 2");
  refused({}, {0, {}, {}}, "launch: --devices: is 0");
  refused({}, {1, 0, {}}, "launch: --nodes: is 0");
}

TEST_CASE("hosts: a rank that is started finds its place") {
  Hosts hosts;
  hosts.devices = 2, hosts.nodes = 3, hosts.node_rank = 1, hosts.address = "node0", hosts.port = 4000;
  for (const int local : {0, 1}) {
    const auto p = seat_from(rank_environment(hosts, local));
    REQUIRE(p);
    REQUIRE(*p);
    CHECK((*p)->rank == 2 + local);
    CHECK((*p)->world == 6);
    CHECK((*p)->local_rank == local);
    CHECK((*p)->local_world == 2);
    CHECK((*p)->address == "node0");
    CHECK((*p)->port == 4000);
  }
}
