#include "cli/keeper.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

// What is there, but for the one before `last`, which has a test of its own.
Names files(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  names.erase("previous.ckpt");
  return names;
}

// Fills a snapshot as the trainer does: the same memory each time, other content.
std::function<Status(Snapshot&, const std::vector<Keeper::Best>&)> content(int mark) {
  return [mark](Snapshot& s, const std::vector<Keeper::Best>&) -> Status {
    s.clear_tensors();
    s.arch = "resnet18";
    s.state = {{"mark", mark}};
    for (std::byte& byte : s.add("weights", "f32", {1000})) byte = static_cast<std::byte>(mark);
    return Done{};
  };
}

// Which content a checkpoint has; it must be sound and all of one piece.
int mark(const fs::path& file) {
  const Result<Snapshot> read = read_checkpoint(file);
  REQUIRE_MESSAGE(read, read.error().text());
  const int found = read->state.at("mark");
  const StoredTensor* weights = read->find("weights");
  REQUIRE(weights);
  CHECK(weights->bytes == 4000);
  for (const std::byte byte : read->bytes(*weights))
    if (byte != static_cast<std::byte>(found)) FAIL(file.string() << " mixes two contents");
  return found;
}

// Saves with a value of the metric; the mark is the epoch.
void save(Keeper& keeper, int epoch, double value) {
  const Status saved = keeper.save(content(epoch), epoch, &value);
  REQUIRE_MESSAGE(saved, saved.error().text());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> names_of(const std::vector<Keeper::Best>& list) {
  std::vector<std::string> names;
  for (const Keeper::Best& best : list) names.push_back(best.file);
  return names;
}

}  // namespace

TEST_CASE("keeper: without a metric there is only last, always the newest") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 3, "val/acc1");
  CHECK(keeper.wait());  // for nothing
  for (int i = 1; i <= 3; ++i) {
    REQUIRE(keeper.save(content(i), 0, nullptr));
    REQUIRE(keeper.wait());
    CHECK(files(folder.path()) == Names{"last.ckpt"});
    CHECK(mark(folder / "last.ckpt") == i);
  }
  CHECK(keeper.best().empty());
}

TEST_CASE("keeper: keeps the best so many, by name, and drops the worse") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 2, "val/acc1");
  save(keeper, 0, 10.004);
  save(keeper, 1, 30);
  save(keeper, 2, 20.126);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=1-val_acc1=30.00.ckpt", "epoch=2-val_acc1=20.13.ckpt"});
  CHECK(mark(folder / "last.ckpt") == 2);

  save(keeper, 3, 5);  // worse than both: only last
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=1-val_acc1=30.00.ckpt", "epoch=2-val_acc1=20.13.ckpt"});
  CHECK(mark(folder / "last.ckpt") == 3);

  save(keeper, 4, 100);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=4-val_acc1=100.00.ckpt", "epoch=1-val_acc1=30.00.ckpt"});
  CHECK(names_of(keeper.best()) ==
        std::vector<std::string>{"epoch=4-val_acc1=100.00.ckpt", "epoch=1-val_acc1=30.00.ckpt"});
  CHECK(keeper.best()[0].score == 100);
}

TEST_CASE("keeper: of equals the older stays") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 1, "val/acc5");
  save(keeper, 0, 50);
  save(keeper, 1, 50);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=0-val_acc5=50.00.ckpt"});
  CHECK(mark(folder / "epoch=0-val_acc5=50.00.ckpt") == 0);
  CHECK(mark(folder / "last.ckpt") == 1);
}

TEST_CASE("keeper: of losses the lowest is best") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 2, "val/loss");
  save(keeper, 0, 6.9078);
  save(keeper, 1, 2.25);
  save(keeper, 2, 0.00004);
  save(keeper, 3, 4);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=2-val_loss=0.0000.ckpt", "epoch=1-val_loss=2.2500.ckpt"});
  CHECK(names_of(keeper.best()) ==
        std::vector<std::string>{"epoch=2-val_loss=0.0000.ckpt", "epoch=1-val_loss=2.2500.ckpt"});
}

TEST_CASE("keeper: to keep none leaves last") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 0, "val/acc1");
  save(keeper, 0, 50);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) == Names{"last.ckpt"});
  CHECK(keeper.best().empty());
}

TEST_CASE("keeper: the best stay as they are while last is replaced") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 2, "val/acc1");
  save(keeper, 1, 70);
  REQUIRE(keeper.wait());
  const std::string before = read_text(folder / "epoch=1-val_acc1=70.00.ckpt");
  CHECK(before == read_text(folder / "last.ckpt"));
  // One save right after the other: the snapshot is filled anew only when the write has finished.
  for (int i = 2; i < 30; ++i) REQUIRE(keeper.save(content(i), i, nullptr));
  REQUIRE(keeper.wait());
  CHECK(mark(folder / "last.ckpt") == 29);
  CHECK(mark(folder / "epoch=1-val_acc1=70.00.ckpt") == 1);
  CHECK(read_text(folder / "epoch=1-val_acc1=70.00.ckpt") == before);
}

TEST_CASE("keeper: the snapshot can list the best, the new one included") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 2, "val/acc1");
  const auto listed = [&](int epoch, double value) {
    std::vector<std::string> seen;
    REQUIRE(keeper.save(
        [&](Snapshot& s, const std::vector<Keeper::Best>& best) {
          seen = names_of(best);
          return content(epoch)(s, best);
        },
        epoch, &value));
    return seen;
  };
  CHECK(listed(0, 10) == std::vector<std::string>{"epoch=0-val_acc1=10.00.ckpt"});
  CHECK(listed(1, 20) ==
        std::vector<std::string>{"epoch=1-val_acc1=20.00.ckpt", "epoch=0-val_acc1=10.00.ckpt"});
  CHECK(listed(2, 5) ==
        std::vector<std::string>{"epoch=1-val_acc1=20.00.ckpt", "epoch=0-val_acc1=10.00.ckpt"});
}

TEST_CASE("keeper: a resumed run goes on with the list, also with fewer to keep") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  std::vector<Keeper::Best> best;
  {
    Keeper keeper(folder.path(), 3, "val/loss");
    save(keeper, 0, 3);
    save(keeper, 1, 2);
    save(keeper, 2, 1);
    REQUIRE(keeper.wait());
    best = keeper.best();
  }
  Keeper keeper(folder.path(), 2, "val/loss");
  keeper.resume(best);
  save(keeper, 3, 9);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=2-val_loss=1.0000.ckpt", "epoch=1-val_loss=2.0000.ckpt"});
  save(keeper, 4, 1.5);
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) ==
        Names{"last.ckpt", "epoch=2-val_loss=1.0000.ckpt", "epoch=4-val_loss=1.5000.ckpt"});
}

TEST_CASE("keeper: an epoch done again after a resume replaces its checkpoint") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  {
    Keeper keeper(folder.path(), 2, "val/acc1");
    save(keeper, 1, 40);
    REQUIRE(keeper.wait());
  }
  Keeper keeper(folder.path(), 2, "val/acc1");  // resumed from before that epoch's end
  const double same = 40;
  REQUIRE(keeper.save(content(77), 1, &same));
  REQUIRE(keeper.wait());
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=1-val_acc1=40.00.ckpt"});
  CHECK(mark(folder / "epoch=1-val_acc1=40.00.ckpt") == 77);
}

TEST_CASE("keeper: a write that fails is told by wait, once") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder / "gone", 2, "val/acc1");
  REQUIRE(keeper.save(content(1), 0, nullptr));
  const Status failed = keeper.wait();
  REQUIRE_FALSE(failed);
  CHECK(has(failed.error().text(), (folder / "gone/last.ckpt").string()));
  CHECK(has(failed.error().text(), "No such file"));
  CHECK(keeper.wait());
  fs::create_directory(folder / "gone");
  REQUIRE(keeper.save(content(2), 0, nullptr));
  REQUIRE(keeper.wait());
  CHECK(mark(folder / "gone/last.ckpt") == 2);
}

TEST_CASE("keeper: a write that fails is told by the next save, which then saves nothing") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  fs::create_directory(folder / "checkpoints");
  Keeper keeper(folder / "checkpoints", 2, "val/acc1");
  save(keeper, 1, 10);
  REQUIRE(keeper.wait());
  fs::create_symlink("/dev/full", folder / "checkpoints/last.ckpt.partial");  // the disk is full
  REQUIRE(keeper.save(content(2), 2, nullptr));
  bool filled = false;
  const Status failed = keeper.save(
      [&](Snapshot& s, const std::vector<Keeper::Best>& best) {
        filled = true;
        return content(3)(s, best);
      },
      3, nullptr);
  REQUIRE_FALSE(failed);
  CHECK(has(failed.error().text(), "No space left"));
  CHECK_FALSE(filled);
  CHECK(keeper.wait());
  CHECK(mark(folder / "checkpoints/last.ckpt") == 1);
  CHECK(mark(folder / "checkpoints/epoch=1-val_acc1=10.00.ckpt") == 1);
}

TEST_CASE("keeper: while last cannot be written, none of the best is dropped") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 1, "val/acc1");
  save(keeper, 1, 10);
  REQUIRE(keeper.wait());
  for (const char* name : {"last.ckpt.partial", "epoch=2-val_acc1=20.00.ckpt.partial"})
    fs::create_symlink("/dev/full", folder / name);
  save(keeper, 2, 20);
  REQUIRE_FALSE(keeper.wait());
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=1-val_acc1=10.00.ckpt"});
  CHECK(mark(folder / "epoch=1-val_acc1=10.00.ckpt") == 1);
  CHECK(names_of(keeper.best()) == std::vector<std::string>{"epoch=1-val_acc1=10.00.ckpt"});
}

TEST_CASE("keeper: a best checkpoint that cannot be put in its place is an error by name") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  write_file(folder / "epoch=1-val_acc1=10.00.ckpt/in the way", "x");
  Keeper keeper(folder.path(), 1, "val/acc1");
  save(keeper, 1, 10);
  const Status failed = keeper.wait();
  REQUIRE_FALSE(failed);
  CHECK(has(failed.error().text(), (folder / "epoch=1-val_acc1=10.00.ckpt").string()));
  CHECK(mark(folder / "last.ckpt") == 1);
}

TEST_CASE("keeper: weights that cannot be copied are an error at once, and all stays as it was") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 1, "val/acc1");
  save(keeper, 1, 10);
  const double better = 20;
  const Status failed = keeper.save(
      [](Snapshot&, const std::vector<Keeper::Best>&) -> Status {
        return Error{"step", "", "copy failed", ""};
      },
      2, &better);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text() == "step: copy failed");
  CHECK(keeper.wait());
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=1-val_acc1=10.00.ckpt"});
  CHECK(mark(folder / "last.ckpt") == 1);
  CHECK(names_of(keeper.best()) == std::vector<std::string>{"epoch=1-val_acc1=10.00.ckpt"});
}

TEST_CASE("keeper: what is being written is finished before it goes") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  {
    Keeper keeper(folder.path(), 1, "val/acc1");
    save(keeper, 7, 10);
  }
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=7-val_acc1=10.00.ckpt"});
  CHECK(mark(folder / "last.ckpt") == 7);
}

TEST_CASE("keeper: the one before last stays, and a failed write costs neither") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 1, "val/acc1");
  save(keeper, 1, 10);
  REQUIRE(keeper.wait());
  CHECK_FALSE(fs::exists(folder / "previous.ckpt"));
  for (int i = 2; i < 5; ++i) {
    REQUIRE(keeper.save(content(i), i, nullptr));
    REQUIRE(keeper.wait());
    CHECK(mark(folder / "last.ckpt") == i);
    CHECK(mark(folder / "previous.ckpt") == i - 1);
  }
  CHECK(mark(folder / "epoch=1-val_acc1=10.00.ckpt") == 1);
  fs::create_symlink("/dev/full", folder / "last.ckpt.partial");
  REQUIRE(keeper.save(content(5), 5, nullptr));
  REQUIRE_FALSE(keeper.wait());
  CHECK(mark(folder / "last.ckpt") == 4);
  CHECK(mark(folder / "previous.ckpt") >= 3);
  CHECK(files(folder.path()) == Names{"last.ckpt", "epoch=1-val_acc1=10.00.ckpt"});
}

TEST_CASE(
    "keeper: what a checkpoint counts on is on disk before it; if not, that is told, and the weights are "
    "saved") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  bool fails = false, there = true;
  Keeper keeper(folder.path(), 1, "val/acc1", [&]() -> Status {
    there = fs::exists(folder / "last.ckpt");
    if (fails) return Error{"log", "metrics.jsonl", "the disk is full", ""};
    return Done{};
  });
  REQUIRE(keeper.save(content(1), 0, nullptr));
  REQUIRE(keeper.wait());
  CHECK_FALSE(there);
  fails = true;
  REQUIRE(keeper.save(content(2), 0, nullptr));
  CHECK(has(keeper.wait().error().text(), "metrics.jsonl"));
  CHECK(mark(folder / "last.ckpt") == 2);
}

TEST_CASE("keeper: a list that names what is not there, or not its own, is not believed") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  fs::create_directory(folder / "checkpoints");
  write_file(folder / "precious.ckpt", "not ours");
  write_file(folder / "checkpoints/other.ckpt", "not ours");
  Keeper keeper(folder / "checkpoints", 1, "val/acc1");
  save(keeper, 0, 10);
  REQUIRE(keeper.wait());
  keeper.resume({{9, "../precious.ckpt"},
                 {8, (folder / "precious.ckpt").string()},
                 {7, "other.ckpt"},
                 {6, "epoch=5-val_acc1=6.00.ckpt"},
                 {5, "epoch=0-val_acc1=10.00.ckpt"}});
  CHECK(names_of(keeper.best()) == std::vector<std::string>{"epoch=0-val_acc1=10.00.ckpt"});
  save(keeper, 6, 50);
  REQUIRE(keeper.wait());
  CHECK(fs::exists(folder / "precious.ckpt"));
  CHECK(fs::exists(folder / "checkpoints/other.ckpt"));
  CHECK_FALSE(fs::exists(folder / "checkpoints/epoch=0-val_acc1=10.00.ckpt"));
}
