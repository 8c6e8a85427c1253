// Where nothing more can be written: a full device, a full disk, a limit on files. Results that are lost are
// a failure; a run ends with the reason, and goes on once there is room.
#include <doctest/doctest.h>

#include "tests/program/shell.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// Each of them has something to say on stdout, and nobody who hears it.
int lost(const Workshop& shop, const std::vector<Words>& commands) {
  int told = 0;
  for (const Words& words : commands) {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    CAPTURE(line);
    const Ended ended = in_shell(shop, "exec \"$@\" >/dev/full", words);
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "stdout: cannot be written: No space left on device"));
    ++told;
  }
  return told;
}

const Words run_sets = {"--set",         "train.epochs=3", "--set",
                        "train.batch=4", "--set",          "checkpoint.every_steps=2"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Trains with its runs folder on a file system of its own size, looks at every checkpoint that is there, and
// goes on with more room. What the steps came to is in `codes`, one number on a line; runs/ is then copied to
// the workshop's own.
constexpr const char* on_a_small_disk = R"(
size=$1; shift
mkdir -p runs
exec unshare -m sh -c '
  size=$1; shift
  mount -t tmpfs -o size=$size none runs || exit 99
  "$@" --set log.name=small 2> first.err; echo $? > codes
  sound=0; damaged=0
  for file in runs/small/checkpoints/*.ckpt; do
    test -e "$file" || continue
    if "$1" export "$file" -o exported.safetensors > /dev/null; then sound=$((sound+1)); else damaged=$((damaged+1)); fi
  done
  echo $sound >> codes; echo $damaged >> codes
  mount -o remount,size=2g runs
  "$@" --set log.name=small --resume auto 2> second.err; echo $? >> codes
  mkdir -p kept && cp -a runs/. kept
' sh "$size" "$@"
)";

struct Outcome {
  int first = -1, sound = -1, damaged = -1, second = -1;
};

Outcome outcome(const Workshop& shop) {
  Outcome o;
  std::istringstream in(read_text(shop.folder / "codes"));
  in >> o.first >> o.sound >> o.damaged >> o.second;
  return o;
}

}  // namespace

TEST_CASE("output: results that cannot be written are a failure") {
  const Workshop shop;
  const int told = lost(shop, {{"--version"},
                               {"--help"},
                               {"train", "--help"},
                               {},
                               {"config", "tiny.toml"},
                               {"config", "--reference"},
                               {"plan", "tiny.toml"},
                               {"plan", "tiny.toml", "--json"},
                               {"graph", "tiny.toml"},
                               {"schedule", "tiny.toml"},
                               {"schedule", "tiny.toml", "--json"},
                               {"show", "tiny.toml"}});
  CHECK(told == 12);
  // Bad usage stays that.
  CHECK(in_shell(shop, "exec \"$@\" >/dev/full", {"config", "nowhere.toml"}).code == 2);
}

TEST_CASE("output: a device is written to, never replaced; a file is whole or not there") {
  const Workshop shop;
  fs::create_symlink("/dev/full", shop.folder / "full.svg");
  const Ended full = shop.run({"schedule", "tiny.toml", "-o", "full.svg"});
  CHECK(full.code == 1);
  CHECK(has(full.err, "full.svg: cannot write: No space left on device"));
  CHECK(fs::is_symlink(shop.folder / "full.svg"));
  fs::create_symlink("/dev/stdout", shop.folder / "out");  // never by its own name: root could replace it
  CHECK(has(shop.run({"graph", "tiny.toml", "-o", "out"}).out, "digraph"));
  CHECK(in_shell(shop, "exec \"$@\" > drawn", {"graph", "tiny.toml", "-o", "out"}).code == 0);
  CHECK(has(read_text(shop.folder / "drawn"), "digraph"));
  CHECK(fs::is_symlink(shop.folder / "out"));
  for (const Words& words : std::vector<Words>{{"graph", "tiny.toml", "-o", "x"},
                                               {"schedule", "tiny.toml", "-o", "x.svg"},
                                               {"show", "tiny.toml", "--npy", "x.npy"},
                                               {"show", "tiny.toml", "--sheet", "x.jpg"}}) {
    CAPTURE(words[0]);
    const Ended ended = in_shell(shop, "ulimit -f 0; exec \"$@\"", words);
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "File too large"));
    CHECK_FALSE(fs::exists(shop.folder / words.back()));
  }
}

TEST_CASE("output: Graphviz is given no name to write to, at which others could plant a link") {
  const Workshop shop;
  write_file(shop.folder / "precious", "mine");
  write_file(shop.folder / "bin/dot", R"(#!/bin/sh
out=
for word; do case $word in -o*) out=${word#-o}; ln -s "$PWD/precious" "$out";; esac; done
if [ "$out" ]; then echo "<svg drawn/>" > "$out"; else echo "<svg drawn/>"; fi
)");
  fs::permissions(shop.folder / "bin/dot", fs::perms::owner_all);
  const Ended drawn =
      in_shell(shop, "PATH=$PWD/bin:$PATH exec \"$@\"", {"graph", "tiny.toml", "--format", "svg"});
  INFO(drawn.err);
  CHECK(drawn.code == 0);
  CHECK(drawn.out == "<svg drawn/>\n");
  CHECK(read_text(shop.folder / "precious") == "mine");
}

TEST_CASE("disk: a limit on files is a write error like any other, and the run goes on without it") {
  const Workshop shop;
  REQUIRE(shop.train(with(run_sets, {"--set", "log.name=whole"})).code == 0);
  const Ended limited = in_shell(shop, "ulimit -f 40000; exec \"$@\"",
                                 with({"train", "tiny.toml", "--set", "log.name=a"}, run_sets));
  INFO(limited.err);
  CHECK(limited.code == 1);
  CHECK(has(limited.err, "File too large"));
  const Ended resumed = shop.train(with(run_sets, {"--set", "log.name=a", "--resume", "auto"}));
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK(timeless(shop, "a") == timeless(shop, "whole"));
}

TEST_SUITE("long") {
  TEST_CASE("output: results that cannot be written are a failure of every command") {
    const Workshop shop;
    REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.epochs=1"}).code == 0);
    const std::string checkpoint = "runs/a/checkpoints/last.ckpt";
    const int told =
        lost(shop, {{"eval", "tiny.toml", "--checkpoint", checkpoint},
                    {"eval", "tiny.toml", "--json", "--checkpoint", checkpoint},
                    {"export", checkpoint, "-o", "w.safetensors"},
                    {"lr-find", "tiny.toml", "--steps", "20"},
                    {"lr-find", "tiny.toml", "--steps", "20", "--json"},
                    {"bench", "step", "tiny.toml", "--steps", "1", "--warm", "0"},
                    {"bench", "step", "tiny.toml", "--steps", "1", "--warm", "0", "--json"},
                    {"bench", "data", "tiny.toml", "--images", "24", "--rounds", "1"},
                    {"bench", "data", "tiny.toml", "--images", "24", "--rounds", "1", "--json"},
                    {"bench", "feed", "tiny.toml", "--seconds", "0.3", "--warmup", "0.1"},
                    {"bench", "feed", "tiny.toml", "--seconds", "0.3", "--warmup", "0.1", "--json"},
                    {"doctor", "tiny.toml"},
                    {"doctor", "--json"},
                    {"graph", "runs/a"},
                    {"tune", "tiny.toml", "--minutes", "0.1"},
                    {"tune", "tiny.toml", "--minutes", "0.1", "--json"}});
    for (const Words& words : std::vector<Words>{{"export", checkpoint, "-o", "x.safetensors"},
                                                 {"export", checkpoint, "-o", "x.pt"},
                                                 {"lr-find", "tiny.toml", "--steps", "20", "-o", "x.svg"},
                                                 {"tune", "tiny.toml", "--minutes", "0.1", "-o", "x.toml"},
                                                 {"synth", "x"}}) {
      CAPTURE(words[0]);
      const Ended ended = in_shell(shop, "ulimit -f 0; exec \"$@\"", words);
      INFO(ended.err);
      CHECK(ended.code == 1);
      CHECK(has(ended.err, "File too large"));
      CHECK_FALSE(fs::exists(shop.folder / words.back()));
    }
    MESSAGE(told, " commands to a full device, 5 files that may not grow");
  }

  TEST_CASE("disk: full at several sizes, a run ends with the reason and goes on with more room") {
    if (!can_mount()) {
      MESSAGE("skipped: no mount namespace can be made here (needs root)");
      return;
    }
    const Workshop reference;
    REQUIRE(reference.train(with(run_sets, {"--set", "log.name=whole"})).code == 0);
    int sizes = 0, checkpoints = 0;
    for (const char* size :
         {"8k", "16k", "24k", "64k", "1m", "30m", "89m", "100m", "150m", "180m", "200m", "260m", "290m"}) {
      CAPTURE(size);
      const Workshop shop;
      Words words = with({"train", "tiny.toml"}, run_sets);
      words.insert(words.begin(),
                   {"/bin/sh", "-c", on_a_small_disk, "sh", size, std::getenv("SLUICE_BINARY")});
      const Ended ended = run_program(words, shop.folder.path());
      INFO(ended.err);
      const std::string first = read_text(shop.folder / "first.err"),
                        second = read_text(shop.folder / "second.err");
      INFO(first);
      INFO(second);
      const Outcome o = outcome(shop);
      CHECK(o.first == 1);
      CHECK(has(first, "No space left on device"));
      CHECK(o.damaged == 0);
      CHECK(o.second == 0);
      CHECK_FALSE(has(second, "passed over"));
      fs::remove_all(shop.runs());
      fs::rename(shop.folder / "kept", shop.runs());
      CHECK(timeless(shop, "small") == timeless(reference, "whole"));
      ++sizes;
      checkpoints += o.sound;
    }
    MESSAGE(sizes, " sizes, ", checkpoints,
            " checkpoints found and all sound, every resumed run with the same records");
  }
}
