#include "run/train/fork.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

struct Forking {
  TemporaryFolder folder;
  Snapshot checkpoint;
  Position position;

  Forking() {
    for (const char* name : {"from/checkpoints", "to/checkpoints"})
      fs::create_directories(folder.path() / name);
    checkpoint.arch = "resnet18";
    checkpoint.source = "from/checkpoints/epoch=0.ckpt";
    position.step = 1000;
  }
  [[nodiscard]] fs::path from() const { return folder / "from/metrics.jsonl"; }
  [[nodiscard]] std::string brought() const { return read_text(folder / "to/metrics.jsonl"); }
  Result<KeptRecords> fork() {
    return fill_fork({.from = folder / "from",
                      .to = folder / "to",
                      .checkpoint = checkpoint,
                      .position = position,
                      .monitor = "val/loss",
                      .next = {}});
  }
};

std::string record(int step, std::size_t bytes = 0) {
  return R"({"event":"train","epoch":0,"step":)" + std::to_string(step) + R"(,"note":")" +
         std::string(bytes, 'x') + "\"}\n";
}

const std::string fork_text =
    R"({"event":"fork","epoch":0,"step":1000,"from":"from/checkpoints/epoch=0.ckpt"})"
    "\n";

// Bytes that this process has had in memory at most since the last call.
std::size_t peak_since_last() {
  std::ifstream status("/proc/self/status");
  std::size_t peak = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) peak = std::stoull(line.substr(6)) << 10;
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak;
}

}  // namespace

TEST_CASE("fork: brings the records up to the position, and tells where it came from") {
  Forking f;
  write_file(f.from(), record(1) + record(1000) + record(1001));
  f.position.records = 2;
  const Result<KeptRecords> kept = f.fork();
  REQUIRE_MESSAGE(kept, kept.error().text());
  CHECK(kept->records == 2);
  CHECK(f.brought() == record(1) + record(1000) + fork_text);
}

TEST_CASE("fork: records that are missing are told, where none is left too") {
  Forking f;
  f.position.records = 3;
  const std::string gap = R"({"event":"gap","epoch":0,"step":1000,"records":{"missing":)";
  REQUIRE(f.fork());  // there is no file
  CHECK(f.brought() == gap + "3,\"after_step\":0}}\n" + fork_text);
  write_file(f.from(), record(7));
  REQUIRE(f.fork());
  CHECK(f.brought() == record(7) + gap + "2,\"after_step\":7}}\n" + fork_text);
}

TEST_CASE("fork: records that cannot be read or written are an error by name") {
  Forking f;
  write_file(f.from(), record(1));
  f.position.records = 1;
  fs::remove_all(f.folder / "to");
  const Result<KeptRecords> lost = f.fork();
  REQUIRE_FALSE(lost);
  CHECK(lost.error().text().find("to/metrics.jsonl") != std::string::npos);
  fs::create_directories(f.folder / "to/checkpoints");
  fs::remove(f.from());
  fs::create_directory(f.from());
  const Result<KeptRecords> unread = f.fork();
  REQUIRE_FALSE(unread);
  CHECK(unread.error().text().find("from/metrics.jsonl") != std::string::npos);
}

TEST_CASE("fork: a long run's records are never in memory all at once") {
  Forking f;
  constexpr std::size_t each = 4000, count = 16'000;  // 64 MB
  {
    std::ofstream out(f.from());
    for (std::size_t i = 0; i < count; ++i) out << record(1, each);
  }
  f.position.records = count;
  (void)peak_since_last();
  const std::size_t before = peak_since_last();
  const Result<KeptRecords> kept = f.fork();
  const std::size_t after = peak_since_last(), taken = after > before ? after - before : 0;
  REQUIRE_MESSAGE(kept, kept.error().text());
  CHECK(kept->records == count);
  CHECK(fs::file_size(f.folder / "to/metrics.jsonl") == kept->bytes + fork_text.size());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep memory of their own
  CHECK(taken < (16u << 20));
#endif
  (void)taken;
}
