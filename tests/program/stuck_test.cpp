// A file on a dead mount, whose open never comes back: whatever the command, it comes to its end, tells its
// results first, and takes nothing down that the stuck thread may use.
#include <doctest/doctest.h>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

Ended run_stuck(const Workshop& shop, const std::string& path, std::vector<std::string> words,
                std::function<bool()> end_once = nullptr) {
  words.insert(words.end(), {"--set", "pipeline.read_threads=64"});  // those before it wait for it
  words.insert(words.begin(),
               {"/usr/bin/env", std::string("LD_PRELOAD=") + SLUICE_FAILING_FILES, "SLUICE_FAIL_CALL=hang",
                "SLUICE_FAIL_PATH=" + path, std::getenv("SLUICE_BINARY")});
  return run_program(words, shop.folder.path(),
                     end_once ? send_signal(SIGTERM, std::move(end_once)) : When{});
}

void check_left(const Ended& ended, int code) {
  INFO(ended.err);
  CHECK(ended.code == code);
  CHECK_FALSE(has(ended.err, "exit handlers run"));
}

}  // namespace

TEST_CASE("stuck: show gives its batch, while a read ahead of it never comes back") {
  const Workshop shop;
  const Ended ended =
      run_stuck(shop, "val/ant/17.JPEG", {"show", "tiny.toml", "--split", "val", "--npy", "a.npy"});
  check_left(ended, 0);
  CHECK(has(ended.out, "val batch 0 (epoch 0): 5 images"));
  CHECK(has(ended.out, "wrote a.npy"));
  CHECK(fs::file_size(shop.folder / "a.npy") > 5 * 32 * 32 * 3);
}

TEST_CASE("stuck: train ends on a signal, says so, and can be resumed") {
  const Workshop shop;
  const auto begun = [&] { return has(read_text(shop.runs() / "a" / "metrics.jsonl"), "\"train\""); };
  const Ended ended =
      run_stuck(shop, "val/ant/17.JPEG", {"train", "tiny.toml", "--set", "log.name=a"}, begun);
  check_left(ended, 143);
  CHECK(has(ended.err, "a read never came back: its thread is left behind"));
  CHECK(has(ended.err, "saved runs/a/checkpoints/last.ckpt"));
  const auto records = shop.metrics("a");
  REQUIRE_FALSE(records.empty());
  CHECK(records.back()["event"] == "end");
  CHECK(records.back()["reason"] == "stopped");
  CHECK(shop.train({"--set", "log.name=a", "--resume", "auto"}).code == 0);
}

TEST_CASE("stuck: bench feed gives its figures") {
  const Workshop shop;
  const Ended ended =
      run_stuck(shop, "train/ant/12.JPEG",
                {"bench", "feed", "tiny.toml", "--seconds", "0.3", "--warmup", "0.1", "--json"});
  check_left(ended, 0);
  CHECK(nlohmann::json::accept(ended.out));
}
