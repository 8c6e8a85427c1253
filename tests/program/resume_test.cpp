// What a run leaves behind when it is stopped, killed or fails, and how it goes on.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

TEST_CASE("train: SIGINT and SIGTERM in mid-epoch save `last`; --resume auto goes on to the same end") {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=whole", "--set", "train.epochs=3"}).code == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = "run" + std::to_string(signal);
    const std::vector<std::string> words = {"--set", "log.name=" + name, "--set", "train.epochs=3"};
    const Ended stopped = shop.train(words, send_signal(signal, "Epoch 0:"));
    INFO(stopped.err);
    CHECK(stopped.code == 128 + signal);
    CHECK(fs::exists(shop.runs() / name / "checkpoints" / "last.ckpt"));
    CHECK(has(stopped.err, "last.ckpt"));

    std::vector<std::string> on = words;
    on.insert(on.end(), {"--resume", "auto"});
    const Ended resumed = shop.train(on);
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    CHECK(has(resumed.err, "going on from"));

    // Every record once, with the losses of a run that was never stopped.
    std::vector<nlohmann::json> a = shop.metrics("whole"), b = shop.metrics(name);
    for (auto* lines : {&a, &b})
      std::erase_if(*lines, [](const nlohmann::json& l) { return l["event"] == "end"; });
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(i);
      for (const char* key : {"event", "epoch", "step", "train/loss", "train/acc1", "val/loss", "val/acc1"})
        CHECK(a[i].value(key, nlohmann::json()) == b[i].value(key, nlohmann::json()));
    }
  }
}

TEST_CASE("train: a full disk is reported, not survived in silence") {
  const Workshop shop;
  // 2 MB is enough for the first files and far too little for a checkpoint.
  const Ended ended =
      run_program({"/bin/sh", "-c",
                   "trap '' XFSZ; ulimit -f 4000; exec \"$SLUICE_BINARY\" train tiny.toml --set log.name=a"},
                  shop.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "last.ckpt"));
  CHECK(has(ended.err, "File too large"));
  CHECK_FALSE(fs::exists(shop.runs() / "a" / "checkpoints" / "last.ckpt"));
  for (const auto& entry : fs::directory_iterator(shop.runs() / "a" / "checkpoints"))
    FAIL(entry.path().string());
}

TEST_CASE("train: a damaged checkpoint is passed over by name") {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "checkpoint.keep=2"}).code == 0);
  const fs::path last = shop.runs() / "a" / "checkpoints" / "last.ckpt";
  std::string bytes = read_text(last);
  fs::remove(last);  // the best one is a hard link to the same file
  bytes[bytes.size() / 2] ^= 1;
  write_file(last, bytes);
  const Ended ended = shop.train({"--set", "log.name=a", "--set", "train.epochs=3", "--resume", "auto"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "passed over"));
  CHECK(has(ended.err, "last.ckpt"));
  const Ended named = shop.train({"--set", "log.name=a", "--resume", "nowhere.ckpt"});
  CHECK(named.code == 2);
  CHECK(has(named.err, "nowhere.ckpt"));
}

TEST_CASE("train: a checkpoint of another network is refused and stays as it is" *
          doctest::test_suite("long")) {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.max_steps=2"}).code == 0);
  const fs::path run = shop.runs() / "a";
  const std::string last = read_text(run / "checkpoints" / "last.ckpt"),
                    metrics = read_text(run / "metrics.jsonl"), config = read_text(run / "config.toml");
  const Ended ended = shop.train({"--set", "log.name=a", "--set", "model.arch=resnet34", "--resume", "auto"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "arch was \"resnet18\" and is now \"resnet34\""));
  CHECK(read_text(run / "checkpoints" / "last.ckpt") == last);
  CHECK(read_text(run / "metrics.jsonl") == metrics);
  CHECK(read_text(run / "config.toml") == config);
}

TEST_CASE("train: a finished run can be made longer, and not shorter than it is") {
  const Workshop shop;
  const auto steps = [&](const std::string& name) {
    std::vector<std::string> seen;
    for (const auto& line : shop.metrics(name))
      if (line["event"] != "end")
        seen.push_back(line["event"].get<std::string>() + std::to_string(line["step"].get<int>()));
    return seen;
  };
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.max_steps=2"}).code == 0);
  const Ended shorter = shop.train({"--set", "log.name=a", "--set", "train.max_steps=1", "--resume", "auto"});
  CHECK(shorter.code == 2);
  CHECK(has(shorter.err, "past the end of this run"));
  const Ended same = shop.train({"--set", "log.name=a", "--set", "train.max_steps=2", "--resume", "auto"});
  CHECK(same.code == 0);
  CHECK(has(same.err, "finished already"));
  const fs::path config = shop.runs() / "a" / "config.toml";
  const std::string before = read_text(config);
  fs::create_hard_link(config, shop.folder / "former.toml");
  const Ended longer = shop.train({"--set", "log.name=a", "--set", "train.max_steps=5", "--resume", "auto"});
  INFO(longer.err);
  CHECK(longer.code == 0);
  CHECK(has(read_text(config), "max_steps = 5"));
  CHECK(read_text(shop.folder / "former.toml") == before);  // replaced whole, never written over
  CHECK(steps("a") ==
        std::vector<std::string>{"train1", "train2", "val2", "train3", "train4", "val4", "train5", "val5"});
}

TEST_CASE("train: killed before the first checkpoint, the same command with --resume auto begins again") {
  const Workshop shop;
  const std::vector<std::string> words = {"--set",          "log.name=a", "--set",
                                          "train.epochs=1", "--resume",   "auto"};
  const Ended killed = shop.train(words, send_signal(SIGKILL, "threads:"));
  CHECK(killed.code == 128 + SIGKILL);
  const Ended again = shop.train(words);
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(has(again.err, "starting anew"));
  CHECK(shop.metrics("a").size() == 4 + 1 + 1);
}

TEST_CASE("train: the same signal told twice at once is one wish") {
  const Workshop shop;
  const Ended ended =
      shop.train({"--set", "log.name=a", "--set", "train.epochs=1000"}, {"Epoch 0:", [](pid_t child) {
                                                                           kill(child, SIGTERM);
                                                                           kill(child, SIGTERM);
                                                                         }});
  INFO(ended.err);
  CHECK(ended.code == 128 + SIGTERM);
  CHECK(has(ended.err, "saved runs/a/checkpoints/last.ckpt"));
}

TEST_CASE("train: a final checkpoint that cannot be written is a failed run") {
  const Workshop shop;
  const Ended ended =
      shop.train({"--set", "log.name=a", "--set", "train.epochs=1"},
                 {"threads:", [&](pid_t) {
                    fs::create_directories(shop.runs() / "a" / "checkpoints" / "last.ckpt.partial" / "x");
                  }});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "last.ckpt"));
  CHECK_FALSE(has(ended.err, "saved "));
}

TEST_CASE("train: a loss that is not finite ends the run, and nothing is saved") {
  const Workshop shop;
  for (const std::string every : {"1", "100"}) {
    const Ended ended =
        shop.train({"--set", "log.name=a" + every, "--set", "optim.lr=1000", "--set", "optim.base_batch=1",
                    "--set", "train.batch=2", "--set", "train.epochs=30", "--set", "log.every=" + every});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "train/loss: is not finite by step"));
    CHECK(has(ended.err, "learning rate"));
    CHECK_FALSE(fs::exists(shop.runs() / ("a" + every) / "checkpoints" / "last.ckpt"));
  }
}
