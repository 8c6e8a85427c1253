// Several ranks on this machine, as users start them: they agree, notice when one is gone, and go on.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/program/rank_process.hpp"
#include "tests/program/workshop.hpp"
#include "tests/support/listeners.hpp"
#include "tests/support/stranger.hpp"

using namespace sluice::test;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

Words sets(const std::string& name, Words more = {}) {
  Words words;
  for (const std::string& set :
       {"log.name=" + name, std::string("train.batch=2"), std::string("train.epochs=2"),
        std::string("dist.heartbeat=2"), std::string("augment.mixup=0.2")})
    words.insert(words.end(), {"--set", set});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words two_ranks(const std::string& name, Words more = {}) {
  more.insert(more.begin(), {"--devices", "2"});
  return sets(name, more);
}

// The records without what depends on the clock.
std::vector<std::string> timeless(const Workshop& shop, const std::string& run) {
  std::vector<std::string> lines;
  for (nlohmann::json record : shop.metrics(run)) {
    forget_clock(record);
    lines.push_back(record.dump());
  }
  return lines;
}

// Once the run has made some records.
std::function<bool()> after_records(const Workshop& shop, const std::string& run, long count) {
  return [file = shop.runs() / run / "metrics.jsonl", count] {
    const std::string text = fs::exists(file) ? read_text(file) : "";
    return std::count(text.begin(), text.end(), '\n') >= count;
  };
}

When signal_rank(int rank, int signal, std::function<bool()> ready) {
  return {"",
          [=](pid_t launcher) {
            const pid_t process = rank_process(launcher, rank);
            if (process > 0) kill(process, signal);
          },
          std::move(ready)};
}

// What one rank printed.
std::string lines_of(const std::string& text, const std::string& prefix) {
  std::istringstream in(text);
  std::string own;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(prefix)) own += line + "\n";
  return own;
}

void same_records(const Workshop& shop, const std::string& a, const std::string& b) {
  const std::vector<std::string> first = timeless(shop, a), second = timeless(shop, b);
  REQUIRE(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    CAPTURE(i);
    CHECK(first[i] == second[i]);
  }
}

void goes_on(const Workshop& shop, const std::string& name) {
  const Ended resumed = shop.train(two_ranks(name, {"--resume", "auto"}));
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
}

// Loses rank 1 of two in mid-run; what rank 0 and the launcher say, and where the run ends after all.
Ended loses_rank_1(const Workshop& shop, const std::string& name, int signal, const Words& more) {
  const Ended lost = shop.train(two_ranks(name, more), signal_rank(1, signal, after_records(shop, name, 3)));
  INFO(lost.err);
  CHECK(has(lines_of(lost.err, "[0] "), "rank 1"));
  Words on = more;
  on.insert(on.end(), {"--resume", "auto"});
  const Ended resumed = shop.train(two_ranks(name, on));
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  same_records(shop, "whole", name);
  return lost;
}

}  // namespace

TEST_CASE("ranks: one that is killed ends the run, which is resumed to the same end") {
  const Workshop shop;
  const Words short_run = {"--set", "train.epochs=1"};
  const Ended whole = shop.train(two_ranks("whole", short_run));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  CHECK(has(whole.err, "rank 0 of 2"));
  CHECK(has(whole.err, "6 steps"));
  CHECK(lines_of(whole.err, "[1] ") == "");  // there is nothing to warn of
  CHECK(shop.metrics("whole").size() == 6 + 1 + 1);
  const Ended killed = loses_rank_1(shop, "killed", SIGKILL, short_run);
  CHECK(killed.code == 128 + SIGKILL);
  CHECK(has(killed.err, "launch: rank 1 was killed by SIGKILL"));
}

TEST_CASE("ranks: on one host nobody listens beyond loopback, and what a stranger sets changes nothing" *
          doctest::test_suite("long")) {
  const Workshop shop;
  const Words longer = {"--set", "train.epochs=10"};
  REQUIRE(shop.train(two_ranks("whole", longer)).code == 0);
  std::vector<std::string> listening;
  std::string read_back;
  const auto attack = [&](pid_t launcher) {
    const pid_t first = rank_process(launcher, 0);
    for (const pid_t process : {launcher, first, rank_process(launcher, 1)})
      for (const std::string& at : listeners(process)) listening.push_back(at);
    const std::string port = variable_of(first, "MASTER_PORT");
    REQUIRE(!port.empty());
    Stranger stranger("127.0.0.1", static_cast<std::uint16_t>(std::stoi(port)));
    REQUIRE(stranger.connected());
    for (const char* key : {"fail/0", "fail/1", "left/0", "left/1", "gone/0", "gone/1", "beat/1"})
      stranger.set("/sluice/0/" + std::string(key), "by a stranger");
    read_back = stranger.get("/sluice/0/fail/1");
    for (const std::string& at : listening) {  // Gloo's as well
      Stranger babbler("127.0.0.1", static_cast<std::uint16_t>(std::stoi(at.substr(at.rfind(':') + 1))));
      babbler.set(std::string(1000, '\xff'), "GET / HTTP/1.1\r\n\r\n");
    }
  };
  const Ended attacked =
      shop.train(two_ranks("attacked", longer), {"", attack, after_records(shop, "attacked", 1)});
  INFO(attacked.err);
  CHECK(read_back == "by a stranger");  // the store has heard it
  CHECK(attacked.code == 0);
  CHECK_FALSE(has(attacked.err, "stranger"));
  CHECK(listening.size() >= 3);  // the store's, and one of Gloo's for each rank
  for (const std::string& at : listening) {
    CAPTURE(at);
    CHECK((at.starts_with("127.") || at.starts_with("[::1]:")));
  }
  same_records(shop, "whole", "attacked");
}

TEST_CASE("ranks: one who finds no store behind the port ends in dist.timeout, and names the address") {
  const Workshop shop;
  const NoStore silent(NoStore::Manner::silent);
  const std::string port = std::to_string(silent.port);
  const Ended ended =
      run_program({"/usr/bin/env", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                   "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, std::getenv("SLUICE_BINARY"), "train",
                   "tiny.toml", "--set", "dist.heartbeat=0.5", "--set", "dist.timeout=1"},
                  shop.folder.path());
  INFO(ended.err);
  CHECK(silent.visitors() > 0);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "ranks: 127.0.0.1:" + port + ": "));
  CHECK(has(ended.err, "did not answer within 1 s"));
}

TEST_CASE("ranks: the environment is changed before there is a second thread that could read it") {
  const Workshop shop;
  const NoStore silent(NoStore::Manner::silent);
  const Ended ended =
      run_program({"/usr/bin/env", std::string("LD_PRELOAD=") + SLUICE_FAILING_FILES,
                   "SLUICE_FAIL_CALL=setenv", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                   "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(silent.port),
                   "TORCH_NCCL_ENABLE_MONITORING=1", std::getenv("SLUICE_BINARY"), "train", "tiny.toml",
                   "--set", "dist.heartbeat=0.5", "--set", "dist.timeout=1"},
                  shop.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 2);
  int changes = 0;
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("setenv ")) continue;
    CAPTURE(line);
    CHECK(line.ends_with(" with 1 threads"));
    ++changes;
  }
  CHECK(changes >= 3);
  for (const char* name :
       {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING", "NCCL_SOCKET_IFNAME"})
    CHECK(has(ended.err, std::string("setenv ") + name + " with"));
}

TEST_CASE("ranks: one that is frozen is noticed by its silence, and the others save") {
  const Workshop shop;
  const Ended frozen =
      shop.train(two_ranks("frozen"), signal_rank(1, SIGSTOP, after_records(shop, "frozen", 2)));
  INFO(frozen.err);
  CHECK(frozen.code == 1);
  CHECK(has(lines_of(frozen.err, "[0] "), "ranks: rank 1"));
  CHECK(has(lines_of(frozen.err, "[0] "), "saved runs/frozen/checkpoints/last.ckpt"));
}

TEST_CASE("ranks: what is wrong before the run ends all of them at once") {
  const Workshop shop;
  const auto began = Clock::now();
  const Ended nowhere = shop.train(two_ranks("a", {"--set", "data.train=nowhere"}));
  INFO(nowhere.err);
  CHECK(nowhere.code == 2);
  CHECK(has(nowhere.err, "nowhere"));
  CHECK(Clock::now() - began < std::chrono::seconds(60));
  CHECK_FALSE(fs::exists(shop.runs() / "a"));

  const auto with = [&](Words variables, Words more) {
    variables.insert(variables.begin(), "/usr/bin/env");
    variables.insert(variables.end(), {std::getenv("SLUICE_BINARY"), "train", "tiny.toml"});
    variables.insert(variables.end(), more.begin(), more.end());
    return run_program(variables, shop.folder.path());
  };
  const Ended half = with({"RANK=0", "WORLD_SIZE=2"}, {});
  CHECK(half.code == 2);
  CHECK(has(half.err, "launch: LOCAL_WORLD_SIZE: is not set"));
  const Ended both = with({"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                           "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1234"},
                          {"--devices", "2"});
  CHECK(both.code == 2);
  CHECK(has(both.err, "launch: RANK: is set"));
  const Ended nodes = with({}, {"--nodes", "2", "--node-rank", "0"});
  CHECK(nodes.code == 2);
  CHECK(has(nodes.err, "launch: MASTER_ADDR: is not set"));
}

TEST_SUITE("long") {
  TEST_CASE("ranks: killed or frozen with everything on that has a state to lose, the run ends the same") {
    const Workshop shop;
    const Words all = {"--set", "checkpoint.every_steps=2",    "--set", "optim.ema=0.9",
                       "--set", "train.accumulate=2",          "--set", "augment.cutmix=1",
                       "--set", "augment.policy=trivial_wide", "--set", "train.epochs=4",
                       "--set", "model.sync_bn=true"};
    REQUIRE(shop.train(two_ranks("whole", all)).code == 0);
    CHECK(loses_rank_1(shop, "killed", SIGKILL, all).code == 128 + SIGKILL);
    const Ended frozen = loses_rank_1(shop, "frozen", SIGSTOP, all);
    CHECK(frozen.code == 1);
    CHECK(has(frozen.err, "saved runs/frozen/checkpoints/last.ckpt"));
  }

  TEST_CASE(
      "ranks: told to end, rank 0 saves before it would be killed, even if it cannot know who is gone") {
    const Workshop shop;
    const auto began = Clock::now();
    const Ended ended =
        shop.train(two_ranks("a", {"--set", "dist.heartbeat=600", "--set", "dist.timeout=900"}),
                   signal_rank(1, SIGKILL, after_records(shop, "a", 2)));
    INFO(ended.err);
    CHECK(ended.code == 128 + SIGKILL);
    CHECK(has(ended.err, "launch: rank 1 was killed by SIGKILL"));
    CHECK(has(ended.err, "[0] saved runs/a/checkpoints/last.ckpt"));
    CHECK(has(ended.err, "[0] error: "));
    CHECK(Clock::now() - began < std::chrono::seconds(60));
  }

  TEST_CASE("ranks: all stop after the same step when one is told to, and the run goes on to the same end") {
    const Workshop shop;
    REQUIRE(shop.train(two_ranks("whole")).code == 0);
    for (const int rank : {-1, 0, 1}) {  // -1: the launcher
      CAPTURE(rank);
      const std::string name = "stopped" + std::to_string(rank + 1);
      When when = rank < 0 ? send_signal(SIGTERM, after_records(shop, name, 4))
                           : signal_rank(rank, SIGTERM, after_records(shop, name, 4));
      const Ended stopped = shop.train(two_ranks(name), when);
      INFO(stopped.err);
      CHECK(stopped.code == 128 + SIGTERM);
      CHECK(has(stopped.err, "saved runs/" + name));
      CHECK_FALSE(has(stopped.err, "is lost"));
      goes_on(shop, name);
      same_records(shop, "whole", name);
    }
  }

  TEST_CASE("ranks: started by hand, through their environment alone; killed and resumed") {
    const Workshop shop;
    REQUIRE(shop.train(two_ranks("whole")).code == 0);
    const auto by_hand = [&](const std::string& name, const Words& more, const std::string& in_between) {
      std::string words;
      for (const std::string& word : sets(name, more)) words += " '" + word + "'";
      const std::string start = "exec \"$SLUICE_BINARY\" train tiny.toml" + words;
      return run_program(
          {"/bin/sh", "-c",
           "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
               std::to_string(20000 + getpid() % 10000) + "\n(RANK=1 LOCAL_RANK=1; export RANK LOCAL_RANK; " +
               start + ") 2>one.txt & one=$!\n" + in_between +
               "\nRANK=0 LOCAL_RANK=0; export RANK LOCAL_RANK; " + start},
          shop.folder.path());
    };
    const Ended killed = by_hand(
        "hand", {},
        "(until [ \"$(wc -l < runs/hand/metrics.jsonl 2>/dev/null || echo 0)\" -ge 3 ]; do sleep 0.05; done; "
        "kill -9 $one) &");
    INFO(killed.err);
    CHECK(killed.code == 1);
    CHECK(has(killed.err, "rank 1"));
    const Ended resumed = by_hand("hand", {"--resume", "auto"}, "");
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    same_records(shop, "whole", "hand");
  }

  TEST_CASE("ranks: a failure of one is told by the other") {
    const Workshop shop;
    for (const int rank : {0, 1}) {
      CAPTURE(rank);
      const std::string name = "failed" + std::to_string(rank), other = std::to_string(1 - rank);
      // Rank 1 finds most of its validation images gone, rank 0 its checkpoint's place taken.
      const Ended ended = shop.train(
          // Little is read ahead: what is taken away must still be wanted.
          two_ranks(name, {"--set", "checkpoint.every_steps=1", "--set", "pipeline.read_ahead=8", "--set",
                           "train.epochs=6"}),
          {"steps and", [&](pid_t) {
             if (rank == 0)
               fs::create_directories(shop.runs() / name / "checkpoints" / "last.ckpt.partial" / "x");
             if (rank == 1)
               for (int i = 10; i < 22; ++i)
                 fs::remove(shop.folder / ("val/bee/" + std::to_string(i) + ".JPEG"));
           }});
      INFO(ended.err);
      CHECK(ended.code == 1);
      CHECK(has(lines_of(ended.err, "[" + other + "] "), "rank " + std::to_string(rank)));
    }
  }

  TEST_CASE("ranks: bad images of all count together, and each rank lists its own") {
    const Workshop shop;
    for (int i = 10; i < 15; ++i)
      write_file(shop.folder / ("val/ant/" + std::to_string(i) + ".JPEG"), "no JPEG");
    write_file(shop.folder / "val/bee/21.JPEG", "no JPEG");
    // Rank 0 has 11 images and with them a batch more than rank 1; there is its last bad one.
    for (const char* name : {"18", "19", "20"})
      fs::remove(shop.folder / ("val/bee/" + std::string(name) + ".JPEG"));
    write_file(shop.folder / "val/ant/20.JPEG", "no JPEG");
    const Ended few = shop.train(two_ranks("few", {"--set", "data.max_bad=0.34", "--set", "train.epochs=1"}));
    INFO(few.err);
    CHECK(few.code == 0);
    const auto lines = [&](const std::string& file) {
      const std::string text = read_text(shop.runs() / "few" / file);
      return std::count(text.begin(), text.end(), '\n');
    };
    CHECK(lines("quarantine.jsonl") == 6);
    CHECK(lines("quarantine.rank1.jsonl") == 1);
    const Ended many =
        shop.train(two_ranks("many", {"--set", "data.max_bad=0.3", "--set", "train.epochs=1"}));
    INFO(many.err);
    CHECK(many.code == 1);
    CHECK(has(many.err, "7 of 21 val images (33.3 %) cannot be used"));
  }

  TEST_CASE("ranks: a run goes on with another number of ranks if the global batch is the same") {
    const Workshop shop;
    REQUIRE(shop.train(two_ranks("a", {"--set", "train.max_steps=3"})).code == 0);
    const Ended other = shop.train(sets("a", {"--resume", "auto"}));
    CHECK(other.code == 2);
    CHECK(has(other.err, "batch was 4 and is now 2"));
    const Ended same = shop.train(sets("a", {"--set", "train.batch=4", "--resume", "auto"}));
    INFO(same.err);
    CHECK(same.code == 0);
    CHECK(has(same.err, "going on from"));
    CHECK(shop.metrics("a").back()["step"] == 12);
  }

  TEST_CASE("ranks: without their launcher they stop by themselves, and save") {
    const Workshop shop;
    const Ended ended = shop.train(two_ranks("a", {"--set", "train.epochs=1000"}),
                                   send_signal(SIGKILL, after_records(shop, "a", 3)));
    CHECK(ended.code == 128 + SIGKILL);
    const auto until = Clock::now() + std::chrono::seconds(60);
    const auto ended_there = [&] {
      return has(read_text(shop.runs() / "a" / "metrics.jsonl"), "\"stopped\"");
    };
    while (!ended_there() && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(ended_there());
    CHECK(fs::exists(shop.runs() / "a" / "checkpoints" / "last.ckpt"));
  }
}
