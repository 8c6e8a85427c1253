// Two hosts, as far as the network can tell: namespaces with addresses of their own and a cable in between,
// which is then pulled out. Needs root.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "tests/program/rank_process.hpp"
#include "tests/program/workshop.hpp"
#include "tests/support/listeners.hpp"

using namespace sluice::test;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

namespace {

class TwoHosts {
 public:
  // Names are short: an interface's has at most 15 letters.
  TwoHosts() : id_(std::to_string(getpid() % 100000)) {
    usable_ = ip("netns add " + host(0)) && ip("netns add " + host(1)) &&
              ip("link add sl" + id_ + "a type veth peer name sl" + id_ + "b");
    for (const int i : {0, 1}) {
      if (!usable_) break;
      const std::string in = "-n " + host(i) + " ";
      usable_ = ip("link set " + end(i) + " netns " + host(i)) &&
                ip(in + "addr add " + address(i) + "/24 dev " + end(i)) &&
                ip(in + "addr add " + other_address(i) + "/24 dev " + end(i)) && ip(in + "link set lo up") &&
                ip(in + "link set " + end(i) + " up");
    }
  }
  ~TwoHosts() {
    for (const int i : {0, 1}) ip("netns del " + host(i));
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  [[nodiscard]] bool usable() const { return usable_; }
  void cable(bool in) const { CHECK(ip("-n " + host(0) + " link set " + end(0) + (in ? " up" : " down"))); }

  [[nodiscard]] static std::string address(int i) { return "10.213.7." + std::to_string(i + 1); }
  // In a network of its own, for which the run is not meant.
  [[nodiscard]] static std::string other_address(int i) { return "10.213.8." + std::to_string(i + 1); }

  // The command line on one of them.
  [[nodiscard]] std::vector<std::string> on(int i, std::vector<std::string> words,
                                            const std::string& variables = "") const {
    const std::vector<std::string> before = {
        "/bin/sh", "-c",
        "PATH=$PATH:/usr/sbin:/sbin; exec ip netns exec \"$0\" /usr/bin/env MASTER_ADDR=" + address(0) + " " +
            variables + " \"$@\"",
        host(i), std::getenv("SLUICE_BINARY")};
    words.insert(words.begin(), before.begin(), before.end());
    return words;
  }

 private:
  static bool ip(const std::string& words) {
    return run_program({"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ip " + words + " 2>/dev/null"}, "/")
               .code == 0;
  }
  [[nodiscard]] std::string host(int i) const { return "sluice-" + id_ + (i == 0 ? "a" : "b"); }
  [[nodiscard]] std::string end(int i) const { return "sl" + id_ + (i == 0 ? "a" : "b"); }

  std::string id_;
  bool usable_ = false;
};

// One rank on each; `when` is for the first one.
std::pair<Ended, Ended> train(const Workshop& shop, const TwoHosts& hosts,
                              const std::vector<std::string>& more, When when = {},
                              const std::pair<std::string, std::string>& variables = {}) {
  const auto words = [&](int i) {
    std::vector<std::string> all = {"train", "tiny.toml", "--nodes", "2", "--node-rank", std::to_string(i)};
    for (const char* set : {"log.name=a", "train.batch=2", "train.epochs=4", "dist.heartbeat=3"})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return hosts.on(i, std::move(all), i == 0 ? variables.first : variables.second);
  };
  std::pair<Ended, Ended> ended;
  std::thread other([&] { ended.second = run_program(words(1), shop.folder.path()); });
  ended.first = run_program(words(0), shop.folder.path(), std::move(when));
  other.join();
  return ended;
}

}  // namespace

TEST_SUITE("long") {
  TEST_CASE("hosts: when the link between them is cut, both end and say why; afterwards the run goes on") {
    const TwoHosts hosts;
    if (!hosts.usable()) {
      MESSAGE("skipped: network namespaces cannot be made here (needs root and iproute2)");
      return;
    }
    const Workshop shop;
    Clock::time_point cut;
    const auto started = [file = shop.runs() / "a" / "metrics.jsonl"] {
      return fs::exists(file) && !read_text(file).empty();
    };
    const auto [first, second] = train(shop, hosts, {},
                                       {"",
                                        [&](pid_t) {
                                          hosts.cable(false);
                                          cut = Clock::now();
                                        },
                                        started});
    const auto took = Clock::now() - cut;
    INFO(first.err);
    INFO(second.err);
    REQUIRE(cut != Clock::time_point());
    CHECK(first.code == 1);
    CHECK(second.code == 1);
    CHECK(has(first.err, "rank 1"));
    CHECK(has(second.err, "rank 0"));
    CHECK(took < std::chrono::seconds(3 + 30 + 10));
    hosts.cable(true);
    const auto [again, other] = train(shop, hosts, {"--resume", "auto"});
    INFO(again.err);
    INFO(other.err);
    CHECK(again.code == 0);
    CHECK(other.code == 0);
    CHECK(shop.metrics("a").back()["step"] == 24);
    CHECK(shop.metrics("a").back()["reason"] == "finished");
  }

  TEST_CASE("hosts: ranks listen on the address of the run's network alone, and meet by a secret") {
    const TwoHosts hosts;
    if (!hosts.usable()) {
      MESSAGE("skipped: network namespaces cannot be made here (needs root and iproute2)");
      return;
    }
    const Workshop shop;
    const std::string secret = "SLUICE_SECRET=0123456789abcdef0123456789abcdef";
    std::vector<std::string> listening;
    const When look = {"",
                       [&](pid_t launcher) {
                         for (const pid_t p : {launcher, rank_process(launcher, 0)})
                           for (const std::string& at : listeners(p)) listening.push_back(at);
                       },
                       [file = shop.runs() / "a" / "metrics.jsonl"] {
                         return fs::exists(file) && !read_text(file).empty();
                       }};
    const auto [first, second] = train(shop, hosts, {}, look, {secret, secret});
    INFO(first.err);
    INFO(second.err);
    CHECK(first.code == 0);
    CHECK(second.code == 0);
    CHECK_FALSE(has(first.err + second.err, "SLUICE_SECRET"));
    CHECK(listening.size() >= 2);  // the store's, and Gloo's
    for (const std::string& at : listening) {
      CAPTURE(at);
      CHECK(at.starts_with(TwoHosts::address(0) + ":"));
    }
    const std::vector<std::string> soon = {"--set", "dist.timeout=4", "--set", "log.name=b"};
    const auto [one, other] = train(shop, hosts, soon, {}, {secret, secret + "0"});
    INFO(one.err);
    INFO(other.err);
    CHECK(one.code == 2);
    CHECK(other.code == 2);
    CHECK(has(one.err, "rank 1: did not come within 4 s"));
    CHECK(has(one.err, "SLUICE_SECRET"));
    CHECK_FALSE(has(one.err + other.err, "0123456789abcdef"));
    const auto [warned, there] = train(shop, hosts, {"--set", "log.name=c", "--set", "train.epochs=1"});
    INFO(warned.err);
    CHECK(warned.code == 0);
    CHECK(there.code == 0);
    CHECK(has(warned.err, "warning: launch: SLUICE_SECRET: is not set"));
  }

  TEST_CASE("hosts: rank 0 does not listen where MASTER_ADDR is not its own, unless it is told where") {
    const TwoHosts hosts;
    if (!hosts.usable()) {
      MESSAGE("skipped: network namespaces cannot be made here (needs root and iproute2)");
      return;
    }
    const Workshop shop;
    const std::vector<std::string> alone = {
        "train", "tiny.toml", "--nodes",          "2",     "--node-rank",
        "0",     "--set",     "dist.heartbeat=1", "--set", "dist.timeout=2"};
    const Ended foreign = run_program(hosts.on(1, alone), shop.folder.path());
    INFO(foreign.err);
    CHECK(foreign.code == 2);
    CHECK(has(foreign.err, "ranks: " + TwoHosts::address(0) + ": is not an address of this host"));
    const Ended told = run_program(hosts.on(1, alone, "SLUICE_LISTEN=0.0.0.0"), shop.folder.path());
    INFO(told.err);
    CHECK(told.code == 2);
    CHECK(has(told.err, "rank 1: did not come within 2 s"));
  }
}
