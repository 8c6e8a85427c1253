// The program as a user runs it: exit codes, files, messages.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

TEST_CASE("train: a run writes all its files and says what limited it") {
  const Workshop shop;
  const Ended ended = shop.train({"--set", "log.name=a"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out.empty());
  CHECK(has(ended.err, "Epoch 1: train/loss"));
  CHECK(has(ended.err, "bound by "));
  const fs::path run = shop.runs() / "a";
  for (const char* file :
       {"config.toml", "train.log", "metrics.jsonl", "graph.dot", "checkpoints/last.ckpt"}) {
    CAPTURE(file);
    CHECK(fs::file_size(run / file) > 0);
  }
  CHECK_FALSE(fs::exists(run / "quarantine.jsonl"));

  const auto lines = shop.metrics("a");
  REQUIRE(lines.size() == 2 * 4 + 2 + 1);  // 24 images in batches of 5
  CHECK(lines[0]["event"] == "train");
  for (const char* key :
       {"train/loss", "train/acc1", "train/acc5", "train/lr", "step_ms", "images_per_s", "data_wait"})
    CHECK(lines[0].contains(key));
  CHECK(lines[4]["event"] == "val");
  CHECK(lines[4]["val/acc5"] == 100.0);  // two classes
  for (const std::size_t epoch : {4, 9})
    CHECK(lines[epoch]["diagnosis"].get<std::string>().starts_with("bound by "));
  CHECK(lines.back()["event"] == "end");
  CHECK(lines.back()["peak_ledger_bytes"] <= 64 << 20);

  const Ended again = shop.train({"--set", "log.name=a"});
  CHECK(again.code == 2);
  CHECK(has(again.err, "never overwritten"));
}

TEST_CASE("train: SIGUSR1 asks what holds the run up, and does not end it") {
  const Workshop shop;
  // Asked in the first of many steps: no epoch is over by then, and the line is the answer.
  const Ended ended =
      shop.train({"--set", "log.name=a", "--set", "train.epochs=1"},
                 send_signal(SIGUSR1, [&] { return fs::exists(shop.runs() / "a" / "graph.dot"); }));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  std::size_t told = 0;
  for (std::size_t at = 0; (at = ended.err.find("bound by ", at)) != std::string::npos; ++at) ++told;
  CHECK(told == 3);  // asked, at the end of the epoch, at the end of the run
}

TEST_CASE("train: the same seed gives the same losses, bit for bit") {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=a"}).code == 0);
  REQUIRE(shop.train({"--set", "log.name=b", "--set", "pipeline.decode_threads=3", "--set",
                      "pipeline.read_ahead=2"})
              .code == 0);
  const auto a = shop.metrics("a"), b = shop.metrics("b");
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i + 1 < a.size(); ++i)
    for (const char* key : {"train/loss", "val/loss", "val/acc1", "train/lr"})
      CHECK(a[i].value(key, 0.0) == b[i].value(key, 0.0));
}

TEST_CASE("train: configuration errors all at once, with file, line and hint; exit 2, and nothing is made") {
  const Workshop shop;
  write_file(shop.folder / "bad.toml",
             std::string("[data]\ntrain = \"train\"\nval = \"val\"\nimagesize = 32\n[train]\nbatch = "
                         "\"many\"\nepochs = 0\n[nonsense]\n"));
  const Ended ended = shop.run({"train", "bad.toml", "--set", "model.arch=resnet51", "--set", "nokey"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "bad.toml:4"));
  CHECK(has(ended.err, "data.image_size"));
  CHECK(has(ended.err, "bad.toml:6"));
  CHECK(has(ended.err, "bad.toml:7"));
  CHECK(has(ended.err, "nonsense"));
  CHECK(has(ended.err, "resnet50"));
  CHECK(has(ended.err, "--set nokey"));
  CHECK_FALSE(fs::exists(shop.runs()));

  const Ended missing = shop.run({"train", "nowhere.toml"});
  CHECK(missing.code == 2);
  CHECK(has(missing.err, "nowhere.toml"));
  CHECK(shop.run({"frobnicate"}).code == 2);
  CHECK(shop.run({"train"}).code == 2);
}

TEST_CASE("train: a budget too small is refused before anything starts, and the one it names works") {
  const Workshop shop;
  const Ended ended = shop.train({"--set", "budget.ram=8MiB"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "batch slots"));
  CHECK(has(ended.err, "2 x "));
  CHECK_FALSE(fs::exists(shop.runs()));
  const std::string before = "set budget.ram to \"";
  REQUIRE(has(ended.err, before));
  const std::string least =
      ended.err.substr(ended.err.find(before) + before.size(),
                       ended.err.substr(ended.err.find(before) + before.size()).find('"'));
  CHECK(shop.train({"--set", "budget.ram=" + least, "--set", "train.epochs=1"}).code == 0);
}

TEST_CASE("train: a missing or empty tree and classes that differ are told; exit 2") {
  const Workshop shop;
  CHECK(has(shop.train({"--set", "data.train=nowhere"}).err, "nowhere"));
  CHECK(shop.train({"--set", "data.train=nowhere"}).code == 2);
  fs::create_directories(shop.folder / "empty");
  CHECK(shop.train({"--set", "data.val=empty"}).code == 2);
  fs::rename(shop.folder.path() / "val" / "bee", shop.folder.path() / "val" / "wasp");
  const Ended differ = shop.train();
  CHECK(differ.code == 2);
  CHECK(has(differ.err, "wasp"));
  CHECK_FALSE(fs::exists(shop.runs()));
}

TEST_CASE("train: bad images are replaced and listed; past data.max_bad the run fails with exit 1") {
  const Workshop shop;
  write_file(shop.folder.path() / "train" / "ant" / "png.JPEG", std::string("\x89PNG\r\n\x1a\n"));
  const Ended fine = shop.train({"--set", "log.name=a", "--set", "data.max_bad=0.1"});
  INFO(fine.err);
  CHECK(fine.code == 0);
  const std::string listed = read_text(shop.runs() / "a" / "quarantine.jsonl");
  CHECK(has(listed, "png.JPEG"));
  CHECK(has(listed, "PNG signature"));
  const Ended strict = shop.train({"--set", "log.name=b", "--set", "data.max_bad=0"});
  INFO(strict.err);
  CHECK(strict.code == 1);
  CHECK(has(strict.err, "data.max_bad"));
}

TEST_CASE(
    "train: a file that cannot be read fails the run with exit 1, naming stage and file; `last` is saved") {
  const Workshop shop;
  const fs::path victim = shop.folder.path() / "train" / "bee" / "15.JPEG";
  const Ended ended = shop.train({"--set", "log.name=a", "--set", "train.epochs=1000"},
                                 {"Epoch 0:", [&](pid_t) { fs::remove(victim); }});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "read: train/bee/15.JPEG: No such file or directory"));
  CHECK(fs::exists(shop.runs() / "a" / "checkpoints" / "last.ckpt"));
}

TEST_CASE("train: a GPU that is not there is told, not waited for") {
  const Workshop shop;
  const Ended ended = shop.train({"--set", "model.device=cuda"});
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "model.device"));
}

TEST_CASE("config: prints what reads back equal") {
  const Workshop shop;
  const Ended first = shop.run({"config", "tiny.toml", "--set", "train.batch=7"});
  REQUIRE(first.code == 0);
  CHECK(has(first.out, "batch = 7"));
  write_file(shop.folder / "again.toml", first.out);
  CHECK(shop.run({"config", "again.toml"}).out == first.out);
}

TEST_CASE("graph: any configuration and any run, as DOT and SVG") {
  const Workshop shop;
  const Ended dot = shop.run({"graph", "tiny.toml"});
  CHECK(dot.code == 0);
  CHECK(has(dot.out, "digraph sluice"));
  CHECK_FALSE(has(dot.out, "items"));
  const Ended svg = shop.run({"graph", "tiny.toml", "--format", "svg", "-o", "g.svg"});
  CHECK(svg.code == 0);
  CHECK(has(read_text(shop.folder / "g.svg"), "</svg>"));
  CHECK(shop.run({"graph", "tiny.toml", "--set", "data.train=nowhere", "--set", "model.device=cuda"}).code ==
        0);

  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.epochs=1"}).code == 0);
  const Ended run = shop.run({"graph", "runs/a"});
  CHECK(run.code == 0);
  CHECK(has(run.out, "items"));
  CHECK(has(run.out, "% full"));
  CHECK(shop.run({"graph", "train"}).code == 2);
}
