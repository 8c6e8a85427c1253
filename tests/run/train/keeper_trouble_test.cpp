#include "run/train/keeper.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"
#include "tests/support/marked.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

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
