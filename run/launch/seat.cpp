#include "run/launch/seat.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

extern char** environ;

namespace sluice {
namespace {

constexpr std::uint16_t usual_port = 29500;  // torchrun's
constexpr int most_ranks = 1'000'000;
constexpr std::size_t shortest_secret = 16, longest_secret = 256;

const std::string* find(const Environment& e, const char* name) {
  const auto found = e.find(name);
  return found == e.end() || found->second.empty() ? nullptr : &found->second;
}

Error missing(const char* name, const std::string& why) {
  return {"launch", name, "is not set, " + why, "set it, or none of these variables"};
}

Error outside(const std::string& name, const std::string& value, int low, int high) {
  return {"launch", name,
          "is " + value + ", not a whole number from " + std::to_string(low) + " to " + std::to_string(high),
          ""};
}

Result<int> number(const char* name, const std::string& text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return outside(name, "\"" + text + "\"", low, high);
  return value;
}

Result<int> required(const Environment& e, const char* name, int low, int high) {
  const std::string* text = find(e, name);
  if (!text) return missing(name, "but RANK is");
  return number(name, *text, low, high);
}

// The command line's word, else the variable's, else nothing.
Result<std::optional<int>> either(const std::optional<int>& asked, const char* option, const Environment& e,
                                  const char* name, int low, int high) {
  if (asked) {
    if (*asked < low || *asked > high) return outside(option, std::to_string(*asked), low, high);
    return asked;
  }
  const std::string* text = find(e, name);
  if (!text) return std::optional<int>();
  const Result<int> value = number(name, *text, low, high);
  if (!value) return value.error();
  return std::optional(*value);
}

// Empty if there is none.
Result<std::string> secret_from(const Environment& e) {
  const std::string* text = find(e, "SLUICE_SECRET");
  if (!text) return std::string();
  const bool readable = std::ranges::all_of(*text, [](char c) { return c > ' ' && c < '\x7f' && c != '/'; });
  if (readable && text->size() >= shortest_secret && text->size() <= longest_secret) return *text;
  return Error{"launch", "SLUICE_SECRET",
               "is not " + std::to_string(shortest_secret) + " to " + std::to_string(longest_secret) +
                   " letters, digits and signs without spaces and slashes",
               "openssl rand -hex 16 makes one"};
}

Status find_store(Hosts& hosts, const Environment& e) {
  const std::string* address = find(e, "MASTER_ADDR");
  if (!address) return missing("MASTER_ADDR", "and without it the hosts cannot find each other");
  hosts.address = *address;
  hosts.port = usual_port;
  if (const std::string* text = find(e, "MASTER_PORT")) {
    const Result<int> port = number("MASTER_PORT", *text, 1, 65535);
    if (!port) return port.error();
    hosts.port = static_cast<std::uint16_t>(*port);
  }
  return Done{};
}

}  // namespace

Environment this_environment() {
  Environment all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

Result<std::optional<Seat>> seat_from(const Environment& e) {
  if (!find(e, "RANK")) return std::optional<Seat>();
  Seat p;
  const Result<int> world = required(e, "WORLD_SIZE", 1, most_ranks);
  if (!world) return world.error();
  const Result<int> rank = required(e, "RANK", 0, *world - 1);
  if (!rank) return rank.error();
  const Result<int> local_world = required(e, "LOCAL_WORLD_SIZE", 1, *world);
  if (!local_world) return local_world.error();
  const Result<int> local_rank = required(e, "LOCAL_RANK", 0, *local_world - 1);
  if (!local_rank) return local_rank.error();
  const Result<int> port = required(e, "MASTER_PORT", 1, 65535);
  if (!port) return port.error();
  const std::string* address = find(e, "MASTER_ADDR");
  if (!address) return missing("MASTER_ADDR", "but RANK is");
  p.rank = *rank, p.world = *world;
  p.local_rank = *local_rank, p.local_world = *local_world;
  p.address = *address;
  p.port = static_cast<std::uint16_t>(*port);
  const std::string* agent = find(e, "TORCHELASTIC_USE_AGENT_STORE");
  p.store_elsewhere = agent && *agent == "True";
  if (const std::string* attempt = find(e, "TORCHELASTIC_RESTART_COUNT")) p.attempt = *attempt;
  if (const std::string* run = find(e, "TORCHELASTIC_RUN_ID")) p.attempt = *run + "/" + p.attempt;
  const Result<std::string> secret = secret_from(e);
  if (!secret) return secret.error();
  p.secret = *secret;
  if (const std::string* listen = find(e, "SLUICE_LISTEN")) p.listen = *listen;
  if (p.all_on_this_host() && !p.store_elsewhere && p.listen.empty()) p.address = "127.0.0.1";
  if (const std::string* text = find(e, listener_variable)) {
    const Result<int> listener = number(listener_variable, *text, 0, 1 << 20);
    if (!listener) return listener.error();
    p.listener = *listener;
  }
  return std::optional(p);
}

Result<Hosts> hosts_from(const Environment& e, const LaunchArguments& asked) {
  Hosts hosts;
  const Result<std::optional<int>> nodes = either(asked.nodes, "--nodes", e, "WORLD_SIZE", 1, most_ranks);
  if (!nodes) return nodes.error();
  const Result<std::optional<int>> node_rank =
      either(asked.node_rank, "--node-rank", e, "NODE_RANK", 0, (*nodes).value_or(most_ranks) - 1);
  if (!node_rank) return node_rank.error();
  if (*node_rank && !*nodes)
    return missing("WORLD_SIZE", "so the number of hosts is not known, but NODE_RANK or --node-rank is");
  hosts.nodes = (*nodes).value_or(1);
  if (hosts.nodes > 1 && !*node_rank)
    return missing("NODE_RANK",
                   "so it is not known which of the " + std::to_string(hosts.nodes) + " hosts this is");
  hosts.node_rank = (*node_rank).value_or(0);
  hosts.devices = asked.devices.value_or(1);
  if (hosts.devices < 1 || hosts.devices > most_ranks / hosts.nodes)
    return outside("--devices", std::to_string(hosts.devices), 1, most_ranks / hosts.nodes);
  if (hosts.nodes == 1) return hosts;  // its launcher thinks of a secret
  if (Status found = find_store(hosts, e); !found) return found.error();
  const Result<std::string> secret = secret_from(e);
  if (!secret) return secret.error();
  hosts.secret = *secret;
  return hosts;
}

std::string trust_warning(const Seat& seat) {
  if (seat.all_on_this_host() || !seat.secret.empty()) return "";
  return "launch: SLUICE_SECRET: is not set, so whoever reaches " + seat.address + " port " +
         std::to_string(seat.port) +
         " can speak for a rank; set the same random text on all hosts (openssl rand -hex 16), and keep the "
         "port in a network of your own (docs/multi-node.md)";
}

Environment rank_environment(const Hosts& hosts, int local) {
  Environment all = {{"RANK", std::to_string(hosts.node_rank * hosts.devices + local)},
                     {"WORLD_SIZE", std::to_string(hosts.world())},
                     {"LOCAL_RANK", std::to_string(local)},
                     {"LOCAL_WORLD_SIZE", std::to_string(hosts.devices)},
                     {"MASTER_ADDR", hosts.address},
                     {"MASTER_PORT", std::to_string(hosts.port)}};
  if (!hosts.secret.empty()) all["SLUICE_SECRET"] = hosts.secret;
  return all;
}

}  // namespace sluice
