// What a crash of the machine leaves of a run's folder, at each moment at which it can come.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "base/files/line.hpp"
#include "nodes/record/metrics.hpp"
#include "run/train/records.hpp"
#include "run/train/run_folder.hpp"
#include "tests/support/crash_disk.hpp"
#include "tests/support/marked.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

std::string record(std::int64_t step) { return json_line({"train", 0, step, {{"train/loss", 1.5}}}); }

std::ptrdiff_t index_of(const std::vector<std::string>& calls, const std::string& call) {
  return std::ranges::find(calls, call) - calls.begin();
}

}  // namespace

TEST_CASE("crash: a checkpoint is there at any moment, sound, and with the records that it counts") {
  const Watchdog watchdog("keeper");
  for (const bool links : {true, false}) {
    CAPTURE(links);
    const TemporaryFolder folder;
    fs::create_directory(folder / "checkpoints");
    const auto save = [&](const std::vector<std::pair<int, std::optional<double>>>& steps) {
      auto metrics = open_lines((folder / "metrics.jsonl").string());
      REQUIRE(metrics);
      const LineSink sink = lines_into(*metrics);
      Keeper keeper(folder / "checkpoints", 1, "val/acc1", [&] { return (*metrics)->sync(); });
      for (const auto& [step, value] : steps) {
        REQUIRE(sink(record(step)));
        REQUIRE(keeper.save(content(step), step, value ? &*value : nullptr));
        REQUIRE(keeper.wait());
      }
    };
    save({{1, {}}});
    CrashDisk disk(folder.path());
    disk.no_links = !links;
    save({{2, 10}, {3, {}}, {4, 20}});
    CHECK(disk.unsafe().empty());
    const std::vector<std::string> calls = disk.calls();
    const std::string publishes = links ? "rename checkpoints/epoch=2-val_acc1=10.00.ckpt.partial"
                                          " checkpoints/epoch=2-val_acc1=10.00.ckpt"
                                        : "rename checkpoints/last.ckpt.partial checkpoints/last.ckpt";
    CHECK(index_of(calls, "sync metrics.jsonl") < index_of(calls, publishes));
    CHECK(index_of(calls, publishes) < static_cast<std::ptrdiff_t>(calls.size()));
    disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
      CAPTURE(when);
      const fs::path all = left / "checkpoints";
      // Without hard links `last` is gone for a moment, and the one before it is there.
      const bool last = fs::exists(all / "last.ckpt");
      CHECK((last || !links));
      const int found = mark(all / (last ? "last.ckpt" : "previous.ckpt"));
      CHECK(found >= 1);
      if (over) CHECK(found == 4);
      const auto kept =
          kept_records(left / "metrics.jsonl", {static_cast<std::size_t>(found), 0, found, false});
      REQUIRE(kept);
      CHECK(kept->records == static_cast<std::size_t>(found));
    });
  }
}

TEST_CASE("crash: config.toml is the old one or the new one") {
  const TemporaryFolder folder;
  REQUIRE(write_config(folder.path(), "old = 1\n"));
  CrashDisk disk(folder.path());
  REQUIRE(write_config(folder.path(), "new = 2\n"));
  CHECK(disk.unsafe().empty());
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    const std::string found = read_text(left / "config.toml");
    CHECK((found == "new = 2\n" || (!over && found == "old = 1\n")));
  });
}

TEST_CASE("crash: records that are cut back lose none that counts, and cutting again ends the same") {
  std::string whole;
  for (int step = 1; step <= 5; ++step) whole += record(step) + "\n";
  for (const std::size_t counted : {3u, 8u}) {  // two too many; three are lost, and a gap tells of them
    CAPTURE(counted);
    const RecordPosition at{counted, 0, counted == 3 ? 3 : 8, false};
    const TemporaryFolder folder;
    write_file(folder / "metrics.jsonl", whole + "{\"torn");
    write_file(folder / "quarantine.jsonl", "a\nb\nc\n");
    CrashDisk disk(folder.path());
    REQUIRE(cut_records(folder / "metrics.jsonl", at));
    REQUIRE(cut_lines(folder / "quarantine.jsonl", 2));
    const std::string wanted = read_text(folder / "metrics.jsonl");
    const std::vector<std::string> calls = disk.calls();
    CHECK(index_of(calls, "cut metrics.jsonl") + 1 == index_of(calls, "sync metrics.jsonl"));
    CHECK(index_of(calls, "cut quarantine.jsonl") + 1 == index_of(calls, "sync quarantine.jsonl"));
    disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
      CAPTURE(when);
      const std::string found = read_text(left / "quarantine.jsonl");
      CHECK((found == "a\nb\n" || (!over && found == "a\nb\nc\n")));
      REQUIRE(cut_records(left / "metrics.jsonl", at));
      CHECK(read_text(left / "metrics.jsonl") == wanted);
    });
  }
}

TEST_CASE("crash: a run's folder is on the disk before anything in it counts") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "runs");
  Config c;
  c.log.dir = folder / "runs";
  c.log.name = "a";
  CrashDisk disk(folder.path());
  REQUIRE(make_run_folder(c, "tiny.toml"));
  CHECK(disk.calls() == std::vector<std::string>{"sync runs/a", "sync runs"});
}
