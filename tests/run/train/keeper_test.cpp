#include "run/train/keeper.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"
#include "tests/support/marked.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

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

TEST_CASE("keeper: notices that what it wrote is gone, or is another file") {
  const Watchdog watchdog("keeper");
  const TemporaryFolder folder;
  Keeper keeper(folder.path(), 2, "val/acc1");
  CHECK_FALSE(keeper.still_there());  // nothing was written yet
  for (int i = 1; i <= 2; ++i) {
    save(keeper, i, 10.0 * i);
    REQUIRE(keeper.wait());
    CHECK(keeper.still_there());
  }
  write_file(folder / "copy", "of somebody else");
  fs::rename(folder / "copy", folder / "last.ckpt");
  REQUIRE_FALSE(keeper.still_there());
  CHECK(has(keeper.still_there().error().text(), "is another file now"));
  fs::remove_all(folder.path());
  REQUIRE_FALSE(keeper.still_there());
  CHECK(has(keeper.still_there().error().text(), "last.ckpt: was written and is gone"));
}
