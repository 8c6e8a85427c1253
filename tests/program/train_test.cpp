// The program as a user runs it: exit codes, files, messages, signals.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/folder.hpp"
#include "tests/support/jpegs.hpp"
#include "tests/support/process.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A folder with a small tree and a configuration that trains on it in seconds.
struct Place {
  TemporaryFolder folder;

  Place() {
    int n = 0;
    for (const char* split : {"train", "val"})
      for (const char* name : {"ant", "bee"})
        for (int i = 0; i < 12; ++i) {
          JpegRecipe r;
          r.size = {60 + 3 * (n++ % 7), 48};
          r.components = name[0] == 'a' ? 1 : 3;
          write_file(folder.path() / split / name / (std::to_string(10 + i) + ".JPEG"), make_jpeg(r));
        }
    write_file(folder / "tiny.toml", R"([data]
train = "train"
val = "val"
image_size = 32
val_resize = 36
max_scratch = "8MiB"
max_file = "1MiB"
[budget]
ram = "64MiB"
[model]
arch = "resnet18"
device = "cpu"
[train]
epochs = 2
batch = 5
threads = 1
[optim]
lr = 0.1
[schedule]
warmup_epochs = 0
[log]
every = 1
)");
  }

  Ended run(std::vector<std::string> words, When when = {}) const {
    words.insert(words.begin(), std::getenv("SLUICE_BINARY"));
    return run_program(words, folder.path(), std::move(when));
  }
  Ended train(std::vector<std::string> more = {}, When when = {}) const {
    std::vector<std::string> words = {"train", "tiny.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return run(std::move(words), std::move(when));
  }
  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    std::istringstream in(read_text(folder.path() / "runs" / run / "metrics.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  fs::path runs() const { return folder / "runs"; }
};

}  // namespace

TEST_CASE("train: a run writes all its files and says what limited it") {
  const Place place;
  const Ended ended = place.train({"--set", "log.name=a"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out.empty());
  CHECK(has(ended.err, "Epoch 1: train/loss"));
  CHECK(has(ended.err, "bound by "));
  const fs::path run = place.runs() / "a";
  for (const char* file :
       {"config.toml", "train.log", "metrics.jsonl", "graph.dot", "checkpoints/last.ckpt"}) {
    CAPTURE(file);
    CHECK(fs::file_size(run / file) > 0);
  }
  CHECK_FALSE(fs::exists(run / "quarantine.jsonl"));

  const auto lines = place.metrics("a");
  REQUIRE(lines.size() == 2 * 4 + 2 + 1);  // 24 images in batches of 5
  CHECK(lines[0]["event"] == "train");
  for (const char* key :
       {"train/loss", "train/acc1", "train/acc5", "train/lr", "step_ms", "images_per_s", "data_wait"})
    CHECK(lines[0].contains(key));
  CHECK(lines[4]["event"] == "val");
  CHECK(lines[4]["val/acc5"] == 100.0);  // two classes
  CHECK(lines.back()["event"] == "end");
  CHECK(lines.back()["peak_ledger_bytes"] <= 64 << 20);

  const Ended again = place.train({"--set", "log.name=a"});
  CHECK(again.code == 2);
  CHECK(has(again.err, "never overwritten"));
}

TEST_CASE("train: the same seed gives the same losses, bit for bit") {
  const Place place;
  REQUIRE(place.train({"--set", "log.name=a"}).code == 0);
  REQUIRE(place
              .train({"--set", "log.name=b", "--set", "pipeline.decode_threads=3", "--set",
                      "pipeline.read_ahead=2"})
              .code == 0);
  const auto a = place.metrics("a"), b = place.metrics("b");
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i + 1 < a.size(); ++i)
    for (const char* key : {"train/loss", "val/loss", "val/acc1", "train/lr"})
      CHECK(a[i].value(key, 0.0) == b[i].value(key, 0.0));
}

TEST_CASE("train: SIGINT and SIGTERM in mid-epoch save `last`; --resume auto goes on to the same end") {
  const Place place;
  REQUIRE(place.train({"--set", "log.name=whole", "--set", "train.epochs=3"}).code == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = "run" + std::to_string(signal);
    const std::vector<std::string> words = {"--set", "log.name=" + name, "--set", "train.epochs=3"};
    const Ended stopped = place.train(words, send_signal(signal, "Epoch 0:"));
    INFO(stopped.err);
    CHECK(stopped.code == 128 + signal);
    CHECK(fs::exists(place.runs() / name / "checkpoints" / "last.ckpt"));
    CHECK(has(stopped.err, "last.ckpt"));

    std::vector<std::string> on = words;
    on.insert(on.end(), {"--resume", "auto"});
    const Ended resumed = place.train(on);
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    CHECK(has(resumed.err, "going on from"));

    // Every record once, with the losses of a run that was never stopped.
    std::vector<nlohmann::json> a = place.metrics("whole"), b = place.metrics(name);
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

TEST_CASE("train: configuration errors all at once, with file, line and hint; exit 2, and nothing is made") {
  const Place place;
  write_file(place.folder / "bad.toml",
             std::string("[data]\ntrain = \"train\"\nval = \"val\"\nimagesize = 32\n[train]\nbatch = "
                         "\"many\"\nepochs = 0\n[nonsense]\n"));
  const Ended ended = place.run({"train", "bad.toml", "--set", "model.arch=resnet51", "--set", "nokey"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "bad.toml:4"));
  CHECK(has(ended.err, "data.image_size"));
  CHECK(has(ended.err, "bad.toml:6"));
  CHECK(has(ended.err, "bad.toml:7"));
  CHECK(has(ended.err, "nonsense"));
  CHECK(has(ended.err, "resnet50"));
  CHECK(has(ended.err, "--set nokey"));
  CHECK_FALSE(fs::exists(place.runs()));

  const Ended missing = place.run({"train", "nowhere.toml"});
  CHECK(missing.code == 2);
  CHECK(has(missing.err, "nowhere.toml"));
  CHECK(place.run({"frobnicate"}).code == 2);
  CHECK(place.run({"train"}).code == 2);
}

TEST_CASE("train: a budget too small is refused before anything starts, and the one it names works") {
  const Place place;
  const Ended ended = place.train({"--set", "budget.ram=8MiB"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "batch slots"));
  CHECK(has(ended.err, "2 x "));
  CHECK_FALSE(fs::exists(place.runs()));
  const std::string before = "set budget.ram to \"";
  REQUIRE(has(ended.err, before));
  const std::string least =
      ended.err.substr(ended.err.find(before) + before.size(),
                       ended.err.substr(ended.err.find(before) + before.size()).find('"'));
  CHECK(place.train({"--set", "budget.ram=" + least, "--set", "train.epochs=1"}).code == 0);
}

TEST_CASE("train: a missing or empty tree and classes that differ are told; exit 2") {
  const Place place;
  CHECK(has(place.train({"--set", "data.train=nowhere"}).err, "nowhere"));
  CHECK(place.train({"--set", "data.train=nowhere"}).code == 2);
  fs::create_directories(place.folder / "empty");
  CHECK(place.train({"--set", "data.val=empty"}).code == 2);
  fs::rename(place.folder.path() / "val" / "bee", place.folder.path() / "val" / "wasp");
  const Ended differ = place.train();
  CHECK(differ.code == 2);
  CHECK(has(differ.err, "wasp"));
  CHECK_FALSE(fs::exists(place.runs()));
}

TEST_CASE("train: bad images are replaced and listed; past data.max_bad the run fails with exit 1") {
  const Place place;
  write_file(place.folder.path() / "train" / "ant" / "png.JPEG", std::string("\x89PNG\r\n\x1a\n"));
  const Ended fine = place.train({"--set", "log.name=a", "--set", "data.max_bad=0.1"});
  INFO(fine.err);
  CHECK(fine.code == 0);
  const std::string listed = read_text(place.runs() / "a" / "quarantine.jsonl");
  CHECK(has(listed, "png.JPEG"));
  CHECK(has(listed, "PNG signature"));
  const Ended strict = place.train({"--set", "log.name=b", "--set", "data.max_bad=0"});
  INFO(strict.err);
  CHECK(strict.code == 1);
  CHECK(has(strict.err, "data.max_bad"));
}

TEST_CASE(
    "train: a file that cannot be read fails the run with exit 1, naming stage and file; `last` is saved") {
  const Place place;
  const fs::path victim = place.folder.path() / "train" / "bee" / "15.JPEG";
  const Ended ended = place.train({"--set", "log.name=a", "--set", "train.epochs=1000"},
                                  {"Epoch 0:", [&](pid_t) { fs::remove(victim); }});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "read: train/bee/15.JPEG: No such file or directory"));
  CHECK(fs::exists(place.runs() / "a" / "checkpoints" / "last.ckpt"));
}

TEST_CASE("train: a full disk is reported, not survived in silence") {
  const Place place;
  // 2 MB is enough for the first files and far too little for a checkpoint.
  const Ended ended =
      run_program({"/bin/sh", "-c",
                   "trap '' XFSZ; ulimit -f 4000; exec \"$SLUICE_BINARY\" train tiny.toml --set log.name=a"},
                  place.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "last.ckpt"));
  CHECK(has(ended.err, "File too large"));
  CHECK_FALSE(fs::exists(place.runs() / "a" / "checkpoints" / "last.ckpt"));
  for (const auto& entry : fs::directory_iterator(place.runs() / "a" / "checkpoints"))
    FAIL(entry.path().string());
}

TEST_CASE("train: a damaged checkpoint is passed over by name") {
  const Place place;
  REQUIRE(place.train({"--set", "log.name=a", "--set", "checkpoint.keep=2"}).code == 0);
  const fs::path last = place.runs() / "a" / "checkpoints" / "last.ckpt";
  std::string bytes = read_text(last);
  fs::remove(last);  // the best one is a hard link to the same file
  bytes[bytes.size() / 2] ^= 1;
  write_file(last, bytes);
  const Ended ended = place.train({"--set", "log.name=a", "--set", "train.epochs=3", "--resume", "auto"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "passed over"));
  CHECK(has(ended.err, "last.ckpt"));
  const Ended named = place.train({"--set", "log.name=a", "--resume", "nowhere.ckpt"});
  CHECK(named.code == 2);
  CHECK(has(named.err, "nowhere.ckpt"));
}

TEST_CASE("train: a checkpoint of another network is refused and stays as it is") {
  const Place place;
  REQUIRE(place.train({"--set", "log.name=a", "--set", "train.max_steps=2"}).code == 0);
  const fs::path run = place.runs() / "a";
  const std::string last = read_text(run / "checkpoints" / "last.ckpt"),
                    metrics = read_text(run / "metrics.jsonl"), config = read_text(run / "config.toml");
  const Ended ended =
      place.train({"--set", "log.name=a", "--set", "model.arch=resnet34", "--resume", "auto"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "arch was \"resnet18\" and is now \"resnet34\""));
  CHECK(read_text(run / "checkpoints" / "last.ckpt") == last);
  CHECK(read_text(run / "metrics.jsonl") == metrics);
  CHECK(read_text(run / "config.toml") == config);
}

TEST_CASE("train: a finished run can be made longer, and not shorter than it is") {
  const Place place;
  const auto steps = [&](const std::string& name) {
    std::vector<std::string> seen;
    for (const auto& line : place.metrics(name))
      if (line["event"] != "end")
        seen.push_back(line["event"].get<std::string>() + std::to_string(line["step"].get<int>()));
    return seen;
  };
  REQUIRE(place.train({"--set", "log.name=a", "--set", "train.max_steps=2"}).code == 0);
  const Ended shorter =
      place.train({"--set", "log.name=a", "--set", "train.max_steps=1", "--resume", "auto"});
  CHECK(shorter.code == 2);
  CHECK(has(shorter.err, "past the end of this run"));
  const Ended same = place.train({"--set", "log.name=a", "--set", "train.max_steps=2", "--resume", "auto"});
  CHECK(same.code == 0);
  const Ended longer = place.train({"--set", "log.name=a", "--set", "train.max_steps=5", "--resume", "auto"});
  INFO(longer.err);
  CHECK(longer.code == 0);
  CHECK(steps("a") ==
        std::vector<std::string>{"train1", "train2", "val2", "train3", "train4", "val4", "train5", "val5"});
}

TEST_CASE("train: killed before the first checkpoint, the same command with --resume auto begins again") {
  const Place place;
  const std::vector<std::string> words = {"--set",          "log.name=a", "--set",
                                          "train.epochs=1", "--resume",   "auto"};
  const Ended killed = place.train(words, send_signal(SIGKILL, "threads:"));
  CHECK(killed.code == 128 + SIGKILL);
  const Ended again = place.train(words);
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(has(again.err, "starting anew"));
  CHECK(place.metrics("a").size() == 4 + 1 + 1);
}

TEST_CASE("train: the same signal told twice at once is one wish") {
  const Place place;
  const Ended ended =
      place.train({"--set", "log.name=a", "--set", "train.epochs=1000"}, {"Epoch 0:", [](pid_t child) {
                                                                            kill(child, SIGTERM);
                                                                            kill(child, SIGTERM);
                                                                          }});
  INFO(ended.err);
  CHECK(ended.code == 128 + SIGTERM);
  CHECK(has(ended.err, "saved runs/a/checkpoints/last.ckpt"));
}

TEST_CASE("train: a final checkpoint that cannot be written is a failed run") {
  const Place place;
  const Ended ended =
      place.train({"--set", "log.name=a", "--set", "train.epochs=1"},
                  {"threads:", [&](pid_t) {
                     fs::create_directories(place.runs() / "a" / "checkpoints" / "last.ckpt.partial" / "x");
                   }});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "last.ckpt"));
  CHECK_FALSE(has(ended.err, "saved "));
}

TEST_CASE("train: a loss that is not finite ends the run, and nothing is saved") {
  const Place place;
  for (const std::string every : {"1", "100"}) {
    const Ended ended =
        place.train({"--set", "log.name=a" + every, "--set", "optim.lr=1000", "--set", "optim.base_batch=1",
                     "--set", "train.batch=2", "--set", "train.epochs=30", "--set", "log.every=" + every});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "train/loss: is not finite by step"));
    CHECK(has(ended.err, "learning rate"));
    CHECK_FALSE(fs::exists(place.runs() / ("a" + every) / "checkpoints" / "last.ckpt"));
  }
}

TEST_CASE("train: a GPU that is not there is told, not waited for") {
  const Place place;
  const Ended ended = place.train({"--set", "model.device=cuda"});
  CHECK(ended.code == 2);
  CHECK(has(ended.err, "model.device"));
}

TEST_CASE("config: prints what reads back equal") {
  const Place place;
  const Ended first = place.run({"config", "tiny.toml", "--set", "train.batch=7"});
  REQUIRE(first.code == 0);
  CHECK(has(first.out, "batch = 7"));
  write_file(place.folder / "again.toml", first.out);
  CHECK(place.run({"config", "again.toml"}).out == first.out);
}

TEST_CASE("graph: any configuration and any run, as DOT and SVG") {
  const Place place;
  const Ended dot = place.run({"graph", "tiny.toml"});
  CHECK(dot.code == 0);
  CHECK(has(dot.out, "digraph sluice"));
  CHECK_FALSE(has(dot.out, "items"));
  const Ended svg = place.run({"graph", "tiny.toml", "--format", "svg", "-o", "g.svg"});
  CHECK(svg.code == 0);
  CHECK(has(read_text(place.folder / "g.svg"), "</svg>"));
  CHECK(place.run({"graph", "tiny.toml", "--set", "data.train=nowhere", "--set", "model.device=cuda"}).code ==
        0);

  REQUIRE(place.train({"--set", "log.name=a", "--set", "train.epochs=1"}).code == 0);
  const Ended run = place.run({"graph", "runs/a"});
  CHECK(run.code == 0);
  CHECK(has(run.out, "items"));
  CHECK(has(run.out, "% full"));
  CHECK(place.run({"graph", "train"}).code == 2);
}
