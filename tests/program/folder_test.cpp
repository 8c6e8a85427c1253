// Run folders that are damaged, taken away or cannot be read: nothing in them is lost in silence.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "model/weights/checkpoint_file.hpp"
#include "tests/program/workshop.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/tree.hpp"

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

Words set(std::initializer_list<std::string> values, Words more = {}) {
  Words words;
  for (const std::string& value : values) words.insert(words.end(), {"--set", value});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Goes on with run `a`, is refused, and has changed nothing.
void refused(const sluice::test::Workshop& shop, const Words& words, const std::string& why) {
  CAPTURE(why);
  const std::string before = tree(shop.runs());
  const Ended ended = shop.train(words);
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(ended.err, why));
  CHECK_FALSE(has(ended.err, "starting anew"));
  CHECK(tree(shop.runs()) == before);
}

const Words on = set({"log.name=a"}, {"--resume", "auto"});

std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream in(read_text(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_file(file, text);
}

// Event and step of each record, "gap3@4" for a gap of three.
std::vector<std::string> records(const sluice::test::Workshop& shop, const std::string& run) {
  std::vector<std::string> seen;
  for (const json& line : shop.metrics(run)) {
    std::string text = line["event"].get<std::string>();
    if (text == "end") continue;
    if (text == "gap") text += std::to_string(line["records"]["missing"].get<int>()) + "@";
    seen.push_back(text + std::to_string(line["step"].get<int>()));
  }
  return seen;
}

}  // namespace

TEST_CASE("train: a checkpoints folder that cannot be listed is not taken for an empty one") {
  const sluice::test::Workshop shop;
  REQUIRE(shop.train(set({"log.name=a", "train.max_steps=2"})).code == 0);
  const fs::path checkpoints = shop.runs() / "a" / "checkpoints", kept = shop.folder / "kept";
  fs::rename(checkpoints, kept);

  fs::create_directory_symlink("checkpoints", checkpoints);  // ELOOP
  refused(shop, on, "checkpoints: cannot be listed: Too many levels of symbolic links");
  fs::remove(checkpoints);
  write_file(checkpoints, "a file");
  refused(shop, on, "checkpoints: cannot be listed: Not a directory");
  fs::remove(checkpoints);
  fs::create_directory_symlink(std::string(300, 'x'), checkpoints);
  refused(shop, on, "checkpoints: cannot be listed: File name too long");
  fs::remove(checkpoints);

  // One whose time cannot be told might be the newest.
  fs::create_directory(checkpoints);
  fs::create_symlink("odd.ckpt", checkpoints / "odd.ckpt");
  refused(shop, on, "odd.ckpt: Too many levels of symbolic links");
  fs::remove(checkpoints / "odd.ckpt");
  fs::create_symlink("gone", checkpoints / "last.ckpt");
  refused(shop, on, "last.ckpt: No such file or directory");
  fs::remove_all(checkpoints);
  fs::rename(kept, checkpoints);

  // The run's own folder, and the one of all runs.
  fs::rename(shop.runs() / "a", kept);
  fs::create_directory_symlink("a", shop.runs() / "a");
  refused(shop, on, "runs/a: Too many levels of symbolic links");
  fs::remove(shop.runs() / "a");
  write_file(shop.runs() / "a", "a file");
  refused(shop, on, "runs/a: is not a folder");
  fs::remove(shop.runs() / "a");
  fs::create_directory_symlink("loop", shop.folder / "loop");
  refused(shop, set({"log.dir=loop"}, {"--resume", "auto"}), "loop: cannot be listed: Too many levels");
  refused(shop, set({"log.dir=tiny.toml"}, {"--resume", "auto"}),
          "tiny.toml: cannot be listed: Not a directory");

  // A run without a name: one of several cannot be looked into.
  fs::rename(kept, shop.runs() / "tiny-20260101-000000");
  fs::create_directories(shop.runs() / "tiny-20260102-000000");
  fs::create_directory_symlink("checkpoints", shop.runs() / "tiny-20260102-000000" / "checkpoints");
  refused(shop, {"--resume", "auto"}, "tiny-20260102-000000/checkpoints: cannot be listed");
}

TEST_CASE("train: a run that begins again sets the records of its first try aside") {
  const sluice::test::Workshop shop;
  const Words words =
      set({"log.name=a", "train.epochs=1", "train.batch=2", "data.max_bad=1"}, {"--resume", "auto"});
  write_file(shop.folder / "train/ant/10.JPEG", "no JPEG");
  const fs::path run = shop.runs() / "a";
  const auto record = [&] {
    return fs::exists(run / "metrics.jsonl") && !lines_of(run / "metrics.jsonl").empty();
  };
  const auto events = [](const fs::path& folder) {
    return std::count_if(fs::directory_iterator(folder), {}, [](const fs::directory_entry& entry) {
      return has(entry.path().filename().string(), "tfevents");
    });
  };
  for (const std::string before : {"before-1", "before-2"}) {
    REQUIRE(shop.train(words, send_signal(SIGKILL, record)).code == 128 + SIGKILL);
    const std::string metrics = read_text(run / "metrics.jsonl"), log = read_text(run / "train.log");
    write_file(run / "quarantine.rank1.jsonl", "{}\n");
    const Ended again = shop.train(words, send_signal(SIGKILL, "is now in runs/a/" + before));
    INFO(again.err);
    CHECK(has(again.err, "starting anew"));
    CHECK(read_text(run / before / "metrics.jsonl") == metrics);
    CHECK(read_text(run / before / "train.log") == log);
    CHECK(read_text(run / before / "quarantine.rank1.jsonl") == "{}\n");
    CHECK(fs::exists(run / before / "config.toml"));
    CHECK(events(run / before) == 1);
    CHECK(events(run) == 1);
    fs::remove_all(run / "metrics.jsonl");  // the next try is killed by its records again
    fs::remove_all(run / "train.log");
    for (const auto& entry : fs::directory_iterator(run))
      if (entry.is_regular_file()) fs::remove(entry.path());
  }
}

TEST_CASE("train: a resume that is refused changes nothing in the folder") {
  const sluice::test::Workshop shop;
  REQUIRE(shop.train(set({"log.name=a", "train.max_steps=2"})).code == 0);
  const fs::path run = shop.runs() / "a", last = run / "checkpoints" / "last.ckpt";
  const auto with = [](std::initializer_list<std::string> values) { return set(values, on); };
  refused(shop, with({"model.arch=resnet34"}), "arch was \"resnet18\"");
  refused(shop, with({"train.max_steps=1"}), "past the end of this run");
  refused(shop, with({"optim.ema=0.9"}), "tensor ema.conv1.weight is missing");

  // As a program with an error, or somebody who knows the checksum, would write them.
  Result<Snapshot> whole = read_checkpoint(last);
  REQUIRE(whole);
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) fs::remove(entry.path());
  const auto changed = [&](const std::string& why, const std::function<void(Snapshot&)>& change) {
    Snapshot snapshot = *whole;
    change(snapshot);
    REQUIRE(write_checkpoint(snapshot, last));
    refused(shop, on, why);
  };
  changed("tensor momentum.fc.bias is missing", [](Snapshot& s) {
    for (StoredTensor& t : s.tensors)
      if (t.name == "momentum.fc.bias") t.name = "momentum.fc.other";
  });
  changed("tensor model.fc.bias is f32 1, the run needs f32 2", [](Snapshot& s) {
    for (StoredTensor& t : s.tensors)
      if (t.name == "model.fc.bias") t.shape = {1};
  });
  changed("last.ckpt: does not say all that is needed", [](Snapshot& s) { s.state.erase("epoch_sums"); });
  changed("last.ckpt: does not say all that is needed", [](Snapshot& s) { s.state["step"] = -1; });
  REQUIRE(write_checkpoint(*whole, last));

  // Files that are in the way.
  for (const std::string name : {"metrics.jsonl", "config.toml", "quarantine.jsonl"}) {
    std::error_code ignored;  // there were no bad images to list
    fs::rename(run / name, shop.folder / "kept", ignored);
    fs::create_directory(run / name);
    refused(shop, on, "runs/a/" + name + ": ");
    fs::remove(run / name);
    fs::rename(shop.folder / "kept", run / name, ignored);
  }

  // Without a checkpoint, and with weights that do not fit.
  fs::rename(last, shop.folder / "weights.ckpt");
  refused(shop, with({"model.arch=resnet34", "model.weights=weights.ckpt"}), "weights.ckpt: tensor");
}

TEST_CASE("ranks: a resume that another rank refuses changes nothing in the folder") {
  const sluice::test::Workshop shop;
  REQUIRE(shop.train(set({"log.name=a", "train.max_steps=2"}, {"--devices", "2"})).code == 0);
  const std::string before = tree(shop.runs());
  const std::string start =
      "exec \"$SLUICE_BINARY\" train tiny.toml --set log.name=a --set train.max_steps=3 --resume auto";
  const Ended ended = run_program(
      {"/bin/sh", "-c",
       "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
           std::to_string(free_port()) + "\n(RANK=1 LOCAL_RANK=1; export RANK LOCAL_RANK; " + start +
           " --set optim.lr=0.3) 2>one.txt &\nRANK=0 LOCAL_RANK=0; export RANK LOCAL_RANK; " + start},
      shop.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(has(read_text(shop.folder / "one.txt"), "optim.lr is 0.3, and 0.1 on rank 0"));
  CHECK(tree(shop.runs()) == before);
}

TEST_CASE("train: a validation without a usable image has no val metrics, and is never the best") {
  const sluice::test::Workshop shop;
  for (const char* name : {"ant", "bee"})
    for (int i = 10; i < 22; ++i)
      write_file(shop.folder / ("val/" + std::string(name) + "/" + std::to_string(i) + ".JPEG"), "no JPEG");
  const Ended ended =
      shop.train(set({"log.name=a", "data.max_bad=1", "checkpoint.monitor=val/loss", "optim.ema=0.9"}));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "warning: validation of epoch 0: no image could be used"));
  int validations = 0;
  for (const json& line : shop.metrics("a"))
    for (const auto& [key, value] : line.items()) {
      validations += key == "event" && value == "val";
      CHECK_FALSE(key.starts_with("val/"));
    }
  CHECK(validations == 2);
  for (const auto& entry : fs::directory_iterator(shop.runs() / "a" / "checkpoints"))
    CHECK_FALSE(entry.path().filename().string().starts_with("epoch="));
}

TEST_CASE("train: records that are lost are noticed, and the file says where") {
  const sluice::test::Workshop shop;
  const fs::path metrics = shop.runs() / "a" / "metrics.jsonl";
  REQUIRE(shop.train(set({"log.name=a", "train.max_steps=3"})).code == 0);
  std::vector<std::string> lines = lines_of(metrics);
  REQUIRE(records(shop, "a") == std::vector<std::string>{"train1", "train2", "train3", "val3"});

  SUBCASE("cut short") { lines.resize(1); }
  SUBCASE(
      "one in the middle, behind which the count would take records of the future for those of the past") {
    lines.erase(lines.begin() + 1);
    lines.insert(lines.begin() + 3, R"({"event":"train","epoch":0,"step":4,"train/loss":9.0})");
  }
  const std::size_t left = std::min<std::size_t>(lines.size(), 3);
  write_lines(metrics, lines);
  const Ended ended =
      shop.train(set({"log.name=a", "checkpoint.every_steps=1", "train.max_steps=5"}, {"--resume", "auto"}));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(has(ended.err, "warning: runs/a/metrics.jsonl: has " + std::to_string(left) + " of the 4 records"));
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < left; ++i)
    expected.push_back(std::vector<std::string>{"train1", left == 1 ? "" : "train3", "val3"}[i]);
  expected.push_back("gap" + std::to_string(4 - left) + "@3");
  expected.insert(expected.end(), {"train4", "val4", "train5", "val5"});
  CHECK(records(shop, "a") == expected);
  // Told once: the next resume counts the gap as what it stands for.
  const Ended again = shop.train(set({"log.name=a", "train.max_steps=6"}, {"--resume", "auto"}));
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK_FALSE(has(again.err, "warning: runs/a/metrics.jsonl"));
  expected.insert(expected.end(), {"train6", "val6"});
  CHECK(records(shop, "a") == expected);
}

TEST_CASE("train: what is taken away in mid-run ends it with an error") {
  const sluice::test::Workshop shop;
  const auto taken = [&](const std::string& name, const std::string& why,
                         const std::function<void(const fs::path&)>& take) {
    const fs::path run = shop.runs() / name;
    bool done = false;
    const Ended ended = shop.train(set({"log.name=" + name, "train.epochs=1000"}), {"Epoch 1:", [&](pid_t) {
                                                                                      take(run);
                                                                                      done = true;
                                                                                    }});
    INFO(ended.err);
    CHECK(done);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, why));
    CHECK_FALSE(has(ended.err, "saved "));
  };
  taken("a", "runs/a/metrics.jsonl: was removed or renamed",
        [](const fs::path& run) { fs::remove(run / "metrics.jsonl"); });
  taken("c", "runs/c/metrics.jsonl: was cut",
        [](const fs::path& run) { fs::resize_file(run / "metrics.jsonl", 0); });
  taken("d", "runs/d", [](const fs::path& run) { fs::remove_all(run); });
  taken("f", "runs/f/checkpoints", [](const fs::path& run) { fs::remove_all(run / "checkpoints"); });
}

TEST_CASE("train: the advice for a run whose checkpoints are all damaged works") {
  const sluice::test::Workshop shop;
  REQUIRE(shop.train(set({"log.name=a", "train.max_steps=1"})).code == 0);
  const fs::path checkpoints = shop.runs() / "a" / "checkpoints";
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const fs::path own = shop.folder / "own";  // the best one is a hard link to the same file
    fs::copy_file(entry.path(), own);
    fs::resize_file(own, fs::file_size(own) - 1);
    fs::rename(own, entry.path());
  }
  refused(shop, on, "start anew without --resume under another log.name, or move the damaged files away");
  refused(shop, set({"log.name=a"}), "is there already");
  CHECK(shop.train(set({"log.name=b", "train.max_steps=1"})).code == 0);
  fs::rename(checkpoints, shop.runs() / "a" / "damaged");
  const std::string metrics = read_text(shop.runs() / "a" / "metrics.jsonl");
  const Ended anew = shop.train(set({"log.name=a", "train.max_steps=1"}, {"--resume", "auto"}));
  INFO(anew.err);
  CHECK(anew.code == 0);
  CHECK(has(anew.err, "starting anew"));
  CHECK(read_text(shop.runs() / "a" / "before-1" / "metrics.jsonl") == metrics);
}
