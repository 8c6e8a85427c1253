// Going on from a checkpoint that is not the newest: in a folder of its own, and nothing in the old one
// changes.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/program/workshop.hpp"
#include "tests/support/tree.hpp"

using namespace sluice::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// Records without what depends on the clock, and without those that tell of forks and ends.
std::vector<std::string> timeless(const Workshop& shop, const std::string& run) {
  std::vector<std::string> lines;
  for (json record : shop.metrics(run)) {
    if (record["event"] == "fork" || record["event"] == "end") continue;
    forget_clock(record);
    lines.push_back(record.dump());
  }
  return lines;
}

fs::path best_of(const fs::path& run, int epoch) {
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    if (entry.path().filename().string().starts_with("epoch=" + std::to_string(epoch))) return entry.path();
  return "none";
}

Words words(const std::string& name, Words more = {}) {
  Words all = {"--set", "log.name=" + name, "--set", "train.epochs=3", "--set", "checkpoint.keep=3"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const json* fork_record(const std::vector<json>& records) {
  const auto found = std::ranges::find_if(records, [](const json& r) { return r["event"] == "fork"; });
  return found == records.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("train: an older checkpoint forks the run, whole with its records, and leaves the old one alone") {
  const Workshop shop;
  REQUIRE(shop.train(words("a")).code == 0);
  const fs::path old = shop.runs() / "a", from = best_of(old, 1);
  const std::string before = tree(old);
  const Ended forked = shop.train(words("a", {"--resume", from.string()}));
  INFO(forked.err);
  CHECK(forked.code == 0);
  CHECK(tree(old) == before);
  CHECK(has(forked.err, "runs/a-2"));
  CHECK(has(forked.err, "forked from " + from.string()));
  const fs::path fork = shop.runs() / "a-2";
  CHECK(timeless(shop, "a-2") == timeless(shop, "a"));
  const std::vector<json> records = shop.metrics("a-2");
  const json* told = fork_record(records);
  REQUIRE(told);
  CHECK((*told)["from"] == from.string());
  CHECK((*told)["step"] == 8);
  CHECK(has(read_text(fork / "config.toml"), "# forked from " + from.string()));
  CHECK(has(read_text(fork / "config.toml"), "name = \"a-2\""));
  CHECK(has(read_text(fork / "train.log"), "forked from " + from.string()));
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(fs::exists(best_of(fork, epoch)));

  // From now on it is a run like any other, and still says where it came from.
  const Ended longer = shop.train(
      {"--set", "log.name=a-2", "--set", "train.epochs=4", "--set", "checkpoint.keep=3", "--resume", "auto"});
  INFO(longer.err);
  CHECK(longer.code == 0);
  CHECK(fork_record(shop.metrics("a-2")));
  CHECK(has(read_text(fork / "config.toml"), "# forked from " + from.string()));
  CHECK(tree(old) == before);
}

TEST_CASE("train: a fork that is killed before its first checkpoint goes on from where it began") {
  const Workshop shop;
  REQUIRE(shop.train(words("a")).code == 0);
  const fs::path from = best_of(shop.runs() / "a", 0);
  const Ended killed = shop.train(words("b", {"--resume", from.string()}), send_signal(SIGKILL, "threads:"));
  REQUIRE(killed.code == 128 + SIGKILL);
  const Ended resumed = shop.train(words("b", {"--resume", "auto"}));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(timeless(shop, "b") == timeless(shop, "a"));
  CHECK(fork_record(shop.metrics("b")));
  // A name that another run has is not taken over.
  const Ended taken = shop.train(words("b", {"--resume", from.string()}));
  CHECK(taken.code == 2);
  CHECK(has(taken.err, "runs/b: is there already"));
}

TEST_CASE("train: a fork that is killed while it is being made is no run, and is made again") {
  const Workshop shop;
  REQUIRE(shop.train(words("a")).code == 0);
  const fs::path from = best_of(shop.runs() / "a", 0);
  // As a kill would leave it.
  const fs::path staged = shop.runs() / ".b.forking";
  fs::create_directories(staged / "checkpoints");
  fs::copy_file(from, staged / "checkpoints" / "epoch=0-val_acc1=1.00.ckpt");
  write_file(staged / "metrics.jsonl", std::string("half a li"));
  const Ended forked = shop.train(words("b", {"--resume", from.string()}));
  INFO(forked.err);
  CHECK(forked.code == 0);
  CHECK_FALSE(fs::exists(staged));
  CHECK(timeless(shop, "b") == timeless(shop, "a"));
  // Killed at some moment of it: there is either no run of that name, or a whole one.
  const Ended killed =
      shop.train(words("c", {"--resume", from.string()}),
                 send_signal(SIGKILL, [at = shop.runs() / ".c.forking"] { return fs::exists(at); }));
  REQUIRE((killed.code == 0 || killed.code == 128 + SIGKILL));
  const fs::path there = shop.runs() / "c";
  CHECK((!fs::exists(there) || fs::exists(there / "checkpoints" / "last.ckpt")));
}

TEST_CASE("train: a fork that goes on by its file keeps its own name" * doctest::test_suite("long")) {
  const Workshop shop;
  REQUIRE(shop.train(words("a")).code == 0);
  const Ended forked = shop.train(words("a", {"--resume", best_of(shop.runs() / "a", 0).string()}));
  REQUIRE_MESSAGE(forked.code == 0, forked.err);
  const Ended longer = shop.train({"--set", "log.name=a", "--set", "train.epochs=4", "--resume",
                                   (shop.runs() / "a-2" / "checkpoints" / "last.ckpt").string()});
  REQUIRE_MESSAGE(longer.code == 0, longer.err);
  CHECK(has(read_text(shop.runs() / "a-2" / "config.toml"), "name = \"a-2\""));
  CHECK(has(read_text(shop.runs() / "a-2" / "config.toml"), "# forked from "));
}

TEST_CASE("train: the newest checkpoint goes on in shop, also by the name it has as the best") {
  const Workshop shop;
  REQUIRE(shop.train(words("a")).code == 0);
  const fs::path run = shop.runs() / "a", best = best_of(run, 2);
  fs::copy_file(best, shop.folder / "copy");  // a copied folder has no hard links
  fs::rename(shop.folder / "copy", best);
  int epochs = 4;
  for (const fs::path& from : {best, run / "checkpoints" / "last.ckpt"}) {
    const Ended on = shop.train({"--set", "log.name=a", "--set", "train.epochs=" + std::to_string(epochs++),
                                 "--set", "checkpoint.keep=9", "--resume", from.string()});
    INFO(on.err);
    CHECK(on.code == 0);
    CHECK_FALSE(has(on.err, "forked"));
    CHECK(std::distance(fs::directory_iterator(shop.runs()), {}) == 1);
  }
  CHECK(shop.metrics("a").back()["step"] == 20);
}

TEST_CASE("train: a fork of a run that is being written to, and of one without a name" *
          doctest::test_suite("long")) {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "train.epochs=2", "--set", "checkpoint.keep=2"}).code == 0);
  const fs::path old = fs::directory_iterator(shop.runs())->path(), from = best_of(old, 0);
  Ended forked;
  const Ended going =
      shop.train({"--set", "train.epochs=1000", "--set", "checkpoint.keep=1000", "--resume", "auto"},
                 {"Epoch 2:", [&](pid_t child) {
                    forked = shop.train({"--set", "train.epochs=2", "--resume", from.string()});
                    kill(child, SIGTERM);
                  }});
  INFO(forked.err);
  CHECK(forked.code == 0);
  CHECK(going.code == 128 + SIGTERM);
  CHECK(std::distance(fs::directory_iterator(shop.runs()), {}) == 2);
}

TEST_CASE("ranks: several fork together" * doctest::test_suite("long")) {
  const Workshop shop;
  const auto two = [](const std::string& name, Words more = {}) {
    Words all = {
        "--devices",         "2",     "--set",         "log.name=" + name, "--set", "train.batch=2", "--set",
        "checkpoint.keep=2", "--set", "data.max_bad=1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (int i = 10; i < 22; i += 2)
    write_file(shop.folder / ("train/ant/" + std::to_string(i) + ".JPEG"), "no JPEG");
  const Ended whole = shop.train(two("a"));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  const fs::path old = shop.runs() / "a", from = best_of(old, 0);
  const std::string before = tree(old);
  const Ended forked = shop.train(two("a", {"--resume", from.string()}));
  INFO(forked.err);
  CHECK(forked.code == 0);
  CHECK(tree(old) == before);
  CHECK(timeless(shop, "a-2") == timeless(shop, "a"));
  for (const char* name : {"quarantine.jsonl", "quarantine.rank1.jsonl"}) {
    CHECK(fs::exists(old / name));
    CHECK(read_text(shop.runs() / "a-2" / name) == read_text(old / name));
  }
}
