// Two hosts, as far as the network can tell: namespaces with addresses of their own and a cable in between,
// which is then pulled out. Needs root.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "tests/program/place.hpp"

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
                ip(in + "addr add " + address(i) + "/24 dev " + end(i)) && ip(in + "link set lo up") &&
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

  // The command line on one of them.
  [[nodiscard]] std::vector<std::string> on(int i, std::vector<std::string> words) const {
    const std::vector<std::string> before = {
        "/bin/sh", "-c",
        "PATH=$PATH:/usr/sbin:/sbin; exec ip netns exec \"$0\" /usr/bin/env MASTER_ADDR=" + address(0) +
            " \"$@\"",
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
  [[nodiscard]] static std::string address(int i) { return "10.213.7." + std::to_string(i + 1); }

  std::string id_;
  bool usable_ = false;
};

// One rank on each; `when` is for the first one.
std::pair<Ended, Ended> train(const Place& place, const TwoHosts& hosts, const std::vector<std::string>& more,
                              When when = {}) {
  const auto words = [&](int i) {
    std::vector<std::string> all = {"train", "tiny.toml", "--nodes", "2", "--node-rank", std::to_string(i)};
    for (const char* set : {"log.name=a", "train.batch=2", "train.epochs=4", "dist.heartbeat=3"})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return hosts.on(i, std::move(all));
  };
  std::pair<Ended, Ended> ended;
  std::thread other([&] { ended.second = run_program(words(1), place.folder.path()); });
  ended.first = run_program(words(0), place.folder.path(), std::move(when));
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
    const Place place;
    Clock::time_point cut;
    const auto started = [file = place.runs() / "a" / "metrics.jsonl"] {
      return fs::exists(file) && !read_text(file).empty();
    };
    const auto [first, second] = train(place, hosts, {},
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
    const auto [again, other] = train(place, hosts, {"--resume", "auto"});
    INFO(again.err);
    INFO(other.err);
    CHECK(again.code == 0);
    CHECK(other.code == 0);
    CHECK(place.metrics("a").back()["step"] == 24);
    CHECK(place.metrics("a").back()["reason"] == "finished");
  }
}
