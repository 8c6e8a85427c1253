// Started without stdin, stdout or stderr, the program's own files must not take their numbers: what is then
// written to "stderr" would go into them.
#include <doctest/doctest.h>

#include "tests/program/shell.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// The redirections that close those of 0, 1 and 2 whose bit is set.
std::string closing(int which) {
  std::string words;
  for (const int fd : {0, 1, 2})
    if (which >> fd & 1) words += " " + std::to_string(fd) + (fd == 0 ? "<&-" : ">&-");
  return words;
}

Ended run(const Workshop& shop, int closed, const std::vector<std::string>& words) {
  return in_shell(shop, "exec \"$@\"" + closing(closed), words);
}

struct Counts {
  int runs = 0, records = 0, files = 0;
};

// Trains with some closed, and holds records and log against those of the run `whole`.
void trains_the_same(const Workshop& shop, int closed, const std::vector<std::string>& more, Counts& counts) {
  const std::string name = "closed" + std::to_string(closed);
  std::vector<std::string> words = {"train", "tiny.toml", "--set", "log.name=" + name};
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = run(shop, closed, words);
  CAPTURE(closed);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const std::vector<std::string> whole = timeless(shop, "whole"), records = timeless(shop, name);
  CHECK(records == whole);
  CHECK(has(read_text(shop.runs() / name / "train.log"), "saved runs/" + name + "/checkpoints/last.ckpt"));
  CHECK(ended.out.empty());
  CHECK(ended.err.empty() == ((closed & 4) != 0));
  ++counts.runs;
  counts.records += static_cast<int>(records.size());
}

const std::vector<std::string> short_run = {"--set", "train.epochs=1"};

void whole_run(const Workshop& shop, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"--set", "log.name=whole"};
  words.insert(words.end(), more.begin(), more.end());
  const Ended whole = shop.train(words);
  INFO(whole.err);
  REQUIRE(whole.code == 0);
}

}  // namespace

TEST_CASE("descriptors: without stdout and stderr, or without all three, the records are whole") {
  const Workshop shop;
  whole_run(shop, short_run);
  Counts counts;
  for (const int closed : {6, 7}) trains_the_same(shop, closed, short_run, counts);
  CHECK(run(shop, 7, {"config", "tiny.toml"}).code == 0);
  CHECK(run(shop, 3, {"config", "nowhere.toml"}).code == 2);
}

TEST_SUITE("long") {
  TEST_CASE("descriptors: every combination of 0, 1 and 2 closed, for train and what writes files") {
    const Workshop shop;
    whole_run(shop, {});
    const std::string checkpoint = "runs/whole/checkpoints/last.ckpt";
    REQUIRE(shop.run({"export", checkpoint, "-o", "w.safetensors"}).code == 0);
    const Ended shown = shop.run({"show", "tiny.toml", "--npy", "w.npy"});
    REQUIRE(shown.code == 0);
    const std::string weights = read_text(shop.folder / "w.safetensors"),
                      array = read_text(shop.folder / "w.npy");
    const std::string config = shop.run({"config", "tiny.toml"}).out;
    REQUIRE(weights.size() > 1000);
    REQUIRE(array.size() > 1000);
    Counts counts;
    for (int closed = 0; closed < 8; ++closed) {
      CAPTURE(closed);
      trains_the_same(shop, closed, {}, counts);
      CHECK(run(shop, closed, {"export", checkpoint, "-o", "x.safetensors"}).code == 0);
      CHECK(read_text(shop.folder / "x.safetensors") == weights);
      CHECK(run(shop, closed, {"show", "tiny.toml", "--npy", "x.npy"}).code == 0);
      CHECK(read_text(shop.folder / "x.npy") == array);
      CHECK(run(shop, closed, {"config", "tiny.toml"}).out == (closed & 2 ? "" : config));
      counts.files += 2;
    }
    MESSAGE(counts.runs, " trainings with the same ", counts.records, " records, ", counts.files,
            " files byte for byte, in 8 combinations");
  }

  TEST_CASE("descriptors: ranks that are started without them") {
    const Workshop shop;
    const std::vector<std::string> two = {"--devices",     "2",     "--set",
                                          "train.batch=2", "--set", "train.epochs=1"};
    whole_run(shop, two);
    Counts counts;
    for (const int closed : {1, 6, 7}) trains_the_same(shop, closed, two, counts);
    MESSAGE(counts.runs, " trainings of two ranks with the same ", counts.records, " records");
  }

  TEST_CASE("descriptors: where there is no /dev/null, nothing is started without them") {
    if (!can_mount()) {
      MESSAGE("skipped: no mount namespace can be made here (needs root)");
      return;
    }
    const Workshop shop;
    const auto without = [&](const std::string& closed) {
      return in_shell(
          shop, "exec unshare -m sh -c 'mount -t tmpfs none /dev && exec \"$@\"" + closed + "' sh \"$@\"",
          {"config", "tiny.toml"});
    };
    CHECK(without("").code == 0);
    CHECK(without(" <&-").code == 1);
    CHECK(without(" <&-").out.empty());
  }
}
