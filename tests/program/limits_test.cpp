// What the machine does not give: memory, threads; and the ways a run is told to end.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/program/shell.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// A machine that has so much memory, as far as the program can see.
std::string with_memory(std::size_t mib) {
  return "echo 'MemAvailable: " + std::to_string(mib * 1024) +
         " kB' > meminfo; exec unshare -m sh -c 'mount --bind meminfo /proc/meminfo && exec \"$@\"' sh "
         "\"$@\"";
}

Words larger(const std::string& batch, Words more = {}) {
  Words words = {"train", "tiny.toml"};
  for (const std::string& set : {std::string("data.image_size=160"), std::string("data.val_resize=160"),
                                 std::string("train.epochs=1"), "train.batch=" + batch})
    words.insert(words.end(), {"--set", set});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The batch that is advised.
int advised(const std::string& text) {
  const std::string before = "--set train.batch=";
  const std::size_t at = text.find(before);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return std::stoi(text.substr(at + before.size()));
}

// Once the run has made some records.
std::function<bool()> after_records(const Workshop& shop, const std::string& run, long count) {
  return [file = shop.runs() / run / "metrics.jsonl", count] {
    const std::string text = fs::exists(file) ? read_text(file) : "";
    return std::count(text.begin(), text.end(), '\n') >= count;
  };
}

}  // namespace

TEST_CASE("fit: what no machine can hold is refused before anything starts, with the table") {
  const Workshop shop;
  write_file(shop.folder / "large.toml",
             "[data]\nsynth = true\ntrain = \"made/train\"\nval = \"made/val\"\n"
             "[model]\ndevice = \"cpu\"\n[train]\nbatch = 60000\n");
  for (const Words& more : {Words{}, {"--set", "budget.ram=1GiB"}, {"--devices", "2"}}) {
    Words words = {"train", "large.toml"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = shop.run(words);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(has(ended.err, "plan: RAM: does not fit: "));
    CHECK(has(ended.err, "activations"));
    CHECK(has(ended.err, "TOO MUCH"));
    CHECK(advised(ended.err) < 60000);
    CHECK(has(ended.err, "budget.enforce") == (more != Words{"--set", "budget.ram=1GiB"}));
    CHECK_FALSE(has(ended.err, "may be killed"));
    CHECK_FALSE(fs::exists(shop.folder / "made"));
    CHECK_FALSE(fs::exists(shop.runs()));
  }
  for (const Words& words :
       {Words{"lr-find", "large.toml"}, {"bench", "step", "large.toml"}, {"tune", "large.toml"}}) {
    const Ended ended = shop.run(words);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(has(ended.err, "plan: RAM: does not fit: "));
    CHECK(advised(ended.err) < 60000);
    CHECK_FALSE(fs::exists(shop.folder / "made"));
  }
}

TEST_CASE("fit: the batch that is advised is taken, one more is not; budget.enforce = false takes any") {
  if (!can_mount()) {
    MESSAGE("skipped: no mount namespace can be made here (needs root)");
    return;
  }
  const Workshop shop;
  const std::string machine = with_memory(800);
  const Ended refused = in_shell(shop, machine, larger("24", {"--set", "log.name=a"}));
  INFO(refused.err);
  CHECK(refused.code == 2);
  const int batch = advised(refused.err);
  CHECK(batch > 0);
  CHECK(batch < 24);
  CHECK(in_shell(shop, machine, larger(std::to_string(batch + 1), {"--set", "log.name=a"})).code == 2);
  CHECK_FALSE(fs::exists(shop.runs()));
  const Ended taken = in_shell(shop, machine, larger(std::to_string(batch), {"--set", "log.name=a"}));
  INFO(taken.err);
  CHECK(taken.code == 0);
  const Ended forced =
      in_shell(shop, machine, larger("24", {"--set", "log.name=b", "--set", "budget.enforce=false"}));
  INFO(forced.err);
  CHECK(forced.code == 0);
  CHECK(has(forced.err, "budget.enforce = false"));
  // The ranks of a host share it: what one may take is too much for two.
  const Ended ranks =
      in_shell(shop, machine, larger(std::to_string(batch), {"--set", "log.name=c", "--devices", "2"}));
  INFO(ranks.err);
  CHECK(ranks.code == 2);
  CHECK(has(ranks.err, "2 ranks"));
  CHECK_FALSE(fs::exists(shop.runs() / "c"));
}

namespace {

// Root has no such limit, and another user cannot read everything: one that can, and has.
const std::string other_user =
    "setpriv --reuid=54321 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override";

bool can_limit_threads() {
  if (run_program({"/bin/sh", "-c", other_user + " true 2>/dev/null"}, "/").code == 0) return true;
  MESSAGE("skipped: cannot become another user here (needs root)");
  return false;
}

Ended limited(const Workshop& shop, int most, const Words& words) {
  return in_shell(shop, "exec prlimit --nproc=" + std::to_string(most) + " " + other_user + " \"$@\"", words);
}

bool names(const Ended& ended, int most) {
  return has(ended.err, "the limit is " + std::to_string(most) +
                            " processes and threads of this user (RLIMIT_NPROC, ulimit -u)");
}

}  // namespace

TEST_CASE("threads: too few of them are told with the limit that says so") {
  if (!can_limit_threads()) return;
  const Workshop shop;
  for (const int most : {1, 5, 12}) {
    CAPTURE(most);
    const Ended ended = limited(shop, most, {"train", "tiny.toml", "--set", "log.name=a"});
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(names(ended, most));
    CHECK_FALSE(fs::exists(shop.runs() / "a"));
  }
  CHECK(names(limited(shop, 1, {"synth", "made"}), 1));
  CHECK(names(limited(shop, 1, {"bench", "step", "tiny.toml"}), 1));
  CHECK(limited(shop, 200, {"train", "tiny.toml", "--set", "train.epochs=1", "--set", "log.name=a"}).code ==
        0);
}

TEST_SUITE("long") {
  TEST_CASE("threads: every limit is either told before the run, or enough for all of it") {
    if (!can_limit_threads()) return;
    const Workshop shop;
    int told = 0, enough = 0;
    for (int most = 16; most <= 40; most += 2) {
      CAPTURE(most);
      const Ended ended = limited(shop, most,
                                  {"train", "tiny.toml", "--set", "log.name=" + std::to_string(most), "--set",
                                   "train.epochs=1", "--set", "train.threads=4"});
      INFO(ended.err);
      CHECK((ended.code == 0 || (ended.code == 2 && names(ended, most))));
      ++(ended.code == 0 ? enough : told);
    }
    CHECK(told > 0);
    CHECK(enough > 0);
    MESSAGE(told, " limits told, ", enough, " enough");
  }
}

TEST_CASE("signals: SIGHUP saves like SIGTERM; under nohup it is not heard") {
  const Workshop shop;
  const Words endless = {"--set", "train.epochs=1000", "--set", "checkpoint.keep=1"};
  const auto train = [&](const std::string& script, const std::string& name, Words more, int signal) {
    Words words = {"train", "tiny.toml", "--set", "log.name=" + name};
    words.insert(words.end(), more.begin(), more.end());
    return in_shell(shop, script, words, send_signal(signal, after_records(shop, name, 2)));
  };
  const Ended hung_up = train("exec \"$@\"", "a", endless, SIGHUP);
  INFO(hung_up.err);
  CHECK(hung_up.code == 128 + SIGHUP);
  CHECK(has(hung_up.err, "SIGHUP: ending after this step and saving last.ckpt"));
  CHECK(has(hung_up.err, "saved runs/a/checkpoints/last.ckpt"));
  CHECK(shop.metrics("a").back()["reason"] == "stopped");
  const Ended kept = train("trap '' HUP; exec \"$@\"", "b", {}, SIGHUP);
  INFO(kept.err);
  CHECK(kept.code == 0);
  CHECK_FALSE(has(kept.err, "SIGHUP"));
}

TEST_CASE("signals: the launcher passes SIGHUP on, unless under nohup") {
  const Workshop shop;
  const Words two = {"train", "tiny.toml", "--devices", "2", "--set", "train.batch=2"};
  const auto train = [&](const std::string& script, const std::string& name, const std::string& epochs) {
    Words words = two;
    words.insert(words.end(), {"--set", "log.name=" + name, "--set", "train.epochs=" + epochs});
    return in_shell(shop, script, words, send_signal(SIGHUP, after_records(shop, name, 2)));
  };
  const Ended hung_up = train("exec \"$@\"", "a", "1000");
  INFO(hung_up.err);
  CHECK(hung_up.code == 128 + SIGHUP);
  CHECK(has(hung_up.err, "[0] SIGHUP: ending within two batches"));
  CHECK(has(hung_up.err, "saved runs/a/checkpoints/last.ckpt"));
  const Ended kept = train("trap '' HUP; exec \"$@\"", "b", "2");
  INFO(kept.err);
  CHECK(kept.code == 0);
}

TEST_CASE("a directory named config.toml is called that") {
  const Workshop shop;
  fs::create_directory(shop.folder / "config.toml");
  for (const Words& words :
       {Words{"train", "config.toml"}, {"config", "config.toml"}, {"plan", "config.toml"}}) {
    const Ended ended = shop.run(words);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(has(ended.err, "config.toml: cannot be read: is a folder, not a file"));
  }
  // In a run folder.
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.epochs=1"}).code == 0);
  fs::remove(shop.runs() / "a" / "config.toml");
  fs::create_directory(shop.runs() / "a" / "config.toml");
  const Ended resumed = shop.train({"--set", "log.name=a", "--resume", "auto"});
  INFO(resumed.err);
  CHECK(resumed.code == 2);
  CHECK(has(resumed.err, "runs/a/config.toml: is a folder, not a file"));
}
