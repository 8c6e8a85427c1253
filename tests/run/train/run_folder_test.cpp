#include "run/train/run_folder.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Config config_in(const fs::path& runs, const std::string& name = "") {
  Config c;
  c.log.dir = runs;
  c.log.name = name;
  return c;
}

// Some time yesterday, and so many minutes. (The clock's own zero lies in 2174, where not every file system
// goes.)
fs::file_time_type at(int minute) {
  static const fs::file_time_type start = fs::file_time_type::clock::now() - std::chrono::hours(24);
  return start + std::chrono::minutes(minute);
}

// A small checkpoint that says which it is.
void checkpoint(const fs::path& path, int mark, int minute) {
  fs::create_directories(path.parent_path());
  Snapshot snapshot;
  snapshot.arch = "resnet18";
  snapshot.state = {{"mark", mark}};
  REQUIRE(write_checkpoint(snapshot, path));
  fs::last_write_time(path, at(minute));
}

void damage(const fs::path& path) {
  const auto time = fs::last_write_time(path);
  std::string bytes = read_text(path);
  bytes.back() ^= 1;
  write_file(path, bytes);
  fs::last_write_time(path, time);
}

struct Found {
  fs::path folder;
  Snapshot snapshot;
  std::vector<Resume::Damaged> passed_over;
};

Result<std::optional<Found>> look(const Config& c, const std::string& what, const fs::path& file) {
  const Result<fs::path> run = folder_to_resume(what, c, file);
  if (!run) return run.error();
  Result<std::optional<Resume>> resume = find_resume(what, *run);
  if (!resume) return resume.error();
  std::optional<Found> found;
  if (*resume) found = Found{*run, std::move((*resume)->snapshot), std::move((*resume)->passed_over)};
  return found;
}

std::optional<Found> found(const Config& c, const std::string& what = "auto",
                           const fs::path& file = "x.toml") {
  Result<std::optional<Found>> resume = look(c, what, file);
  REQUIRE_MESSAGE(resume, resume.error().text());
  return std::move(*resume);
}

std::string failure(const Config& c, const std::string& what = "auto") {
  const Result<std::optional<Found>> resume = look(c, what, "x.toml");
  REQUIRE_FALSE(resume);
  return resume.error().text();
}

int mark(const std::optional<Found>& resume) {
  REQUIRE(resume);
  return resume->snapshot.state.at("mark");
}

// What cut_lines leaves of a file with this text, after its number of lines.
std::string cut(const std::string& text, std::size_t lines) {
  const TemporaryFolder folder;
  const fs::path file = folder / "metrics.jsonl";
  write_file(file, text);
  const Result<std::size_t> kept = cut_lines(file, lines);
  REQUIRE_MESSAGE(kept, kept.error().text());
  return std::to_string(*kept) + ":" + read_text(file);
}

}  // namespace

TEST_CASE("run folder: a named one is made once and never taken over") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "deep/runs", "mine");
  const Result<fs::path> made = make_run_folder(c, "configs/x.toml");
  REQUIRE_MESSAGE(made, made.error().text());
  CHECK(*made == folder / "deep/runs/mine");
  CHECK(fs::is_directory(*made / "checkpoints"));
  write_file(*made / "metrics.jsonl", "kept\n");
  const Result<fs::path> again = make_run_folder(c, "configs/x.toml");
  REQUIRE_FALSE(again);
  CHECK(has(again.error().text(), made->string()));
  CHECK(has(again.error().text(), "never overwritten"));
  CHECK(has(again.error().text(), "--resume auto"));
  CHECK(read_text(*made / "metrics.jsonl") == "kept\n");
  CHECK(std::distance(fs::directory_iterator(folder / "deep/runs"), {}) == 1);
}

TEST_CASE("run folder: without a name, runs that start together get a folder each") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs");
  std::set<fs::path> all;
  for (int i = 0; i < 5; ++i) {  // most of them within one second
    const Result<fs::path> made = make_run_folder(c, "configs/quick.toml");
    REQUIRE_MESSAGE(made, made.error().text());
    CHECK(made->parent_path() == folder / "runs");
    CHECK(made->filename().string().starts_with("quick-"));
    CHECK(fs::is_directory(*made / "checkpoints"));
    all.insert(*made);
  }
  CHECK(all.size() == 5);
}

TEST_CASE("run folder: a place that cannot hold one is an error by name") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  for (const std::string name : {"", "mine"}) {
    const Result<fs::path> made = make_run_folder(config_in(folder / "file/runs", name), "x.toml");
    REQUIRE_FALSE(made);
    CHECK(has(made.error().text(), (folder / "file/runs").string()));
    CHECK(has(made.error().text(), "Not a directory"));
  }
  write_file(folder / "runs/mine", "a file with the run's name");
  const Result<fs::path> made = make_run_folder(config_in(folder / "runs", "mine"), "x.toml");
  REQUIRE_FALSE(made);
  CHECK(has(made.error().text(), (folder / "runs/mine").string()));
  CHECK(read_text(folder / "runs/mine") == "a file with the run's name");
}

TEST_CASE("resume: a checkpoint that is named") {
  const TemporaryFolder folder;
  const fs::path run = folder / "runs/some";
  checkpoint(run / "checkpoints/last.ckpt", 1, 2);
  checkpoint(run / "checkpoints/epoch=0-val_acc1=9.00.ckpt", 2, 1);
  const Config c = config_in(folder / "elsewhere");
  const auto resume = found(c, (run / "checkpoints/epoch=0-val_acc1=9.00.ckpt").string());
  CHECK(mark(resume) == 2);
  CHECK(resume->folder == run);
  CHECK(resume->passed_over.empty());
  CHECK(found(c, (run / "checkpoints/../checkpoints/./last.ckpt").string())->folder == run);
  CHECK(found(c, fs::relative(run / "checkpoints/last.ckpt").string())->folder == run);

  damage(run / "checkpoints/last.ckpt");  // asked for by name: no other is taken for it
  CHECK(has(failure(c, (run / "checkpoints/last.ckpt").string()), "last.ckpt: damaged"));
  CHECK(has(failure(c, (run / "checkpoints/none.ckpt").string()), "No such file"));
  checkpoint(folder / "copy.ckpt", 3, 1);
  CHECK(has(failure(c, (folder / "copy.ckpt").string()), "not in a run's checkpoints/ folder"));
}

TEST_CASE("resume auto: nothing is there yet") {
  const TemporaryFolder folder;
  CHECK_FALSE(found(config_in(folder / "none")));
  CHECK_FALSE(found(config_in(folder / "none", "mine")));
  const Config c = config_in(folder / "runs");
  REQUIRE(make_run_folder(c, "x.toml"));
  CHECK_FALSE(found(c));  // a run without a checkpoint
  const Config named = config_in(folder / "runs", "mine");
  REQUIRE(make_run_folder(named, "x.toml"));
  CHECK_FALSE(found(named));
  write_file(folder / "runs/mine/checkpoints/last.ckpt.partial", "killed while writing");
  CHECK_FALSE(found(named));
}

TEST_CASE("resume auto: the newest checkpoint, and the one before it if that is damaged") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs", "mine");
  const fs::path checkpoints = folder / "runs/mine/checkpoints";
  // Not in the order of their names, nor of their numbers.
  checkpoint(checkpoints / "epoch=1-val_acc1=5.00.ckpt", 1, 30);
  checkpoint(checkpoints / "epoch=9-val_acc1=7.00.ckpt", 9, 10);
  checkpoint(checkpoints / "epoch=3-val_acc1=6.00.ckpt", 3, 20);
  checkpoint(checkpoints / "last.ckpt", 100, 40);
  CHECK(mark(found(c)) == 100);
  CHECK(found(c)->folder == folder / "runs/mine");
  CHECK(found(c)->passed_over.empty());

  damage(checkpoints / "last.ckpt");
  auto resume = found(c);
  CHECK(mark(resume) == 1);
  REQUIRE(resume->passed_over.size() == 1);
  CHECK(has(resume->passed_over[0].reason, (checkpoints / "last.ckpt").string()));
  CHECK(has(resume->passed_over[0].reason, "checksum"));

  write_file(checkpoints / "epoch=1-val_acc1=5.00.ckpt", "");
  fs::last_write_time(checkpoints / "epoch=1-val_acc1=5.00.ckpt", at(30));
  resume = found(c);
  CHECK(mark(resume) == 3);
  CHECK(resume->passed_over.size() == 2);
}

TEST_CASE("resume auto: of two from the same moment, last is taken") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs", "mine");
  const fs::path checkpoints = folder / "runs/mine/checkpoints";
  for (const std::string name : {"a.ckpt", "epoch=1-val_acc1=5.00.ckpt", "z.ckpt"})
    checkpoint(checkpoints / name, 1, 10);
  checkpoint(checkpoints / "last.ckpt", 2, 10);
  CHECK(mark(found(c)) == 2);
}

TEST_CASE("resume auto: if all are damaged, each is listed") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs", "mine");
  const fs::path checkpoints = folder / "runs/mine/checkpoints";
  for (const std::string name : {"last.ckpt", "epoch=1-val_acc1=5.00.ckpt"}) {
    checkpoint(checkpoints / name, 1, 10);
    damage(checkpoints / name);
  }
  const std::string text = failure(c);
  CHECK(has(text, (folder / "runs/mine").string()));
  CHECK(has(text, "every checkpoint is damaged"));
  CHECK(has(text, (checkpoints / "last.ckpt").string()));
  CHECK(has(text, (checkpoints / "epoch=1-val_acc1=5.00.ckpt").string()));
}

TEST_CASE("resume auto: without a name, the run whose checkpoint is newest") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs");
  const auto run = [&](const std::string& name) { return folder / "runs" / name; };
  checkpoint(run("x-20260101-000000") / "checkpoints/last.ckpt", 1,
             50);  // went on after the next was started
  checkpoint(run("x-20260102-000000") / "checkpoints/last.ckpt", 2, 40);
  checkpoint(run("x-20260102-000000-2") / "checkpoints/last.ckpt", 3, 30);
  fs::create_directories(run("x-20260103-000000") / "checkpoints");  // killed before its first checkpoint
  write_file(run("x-notes.txt"), "not a run");
  auto resume = found(c);
  CHECK(mark(resume) == 1);
  CHECK(resume->folder == run("x-20260101-000000"));
  checkpoint(run("x-20260102-000000-2") / "checkpoints/epoch=0-val_acc1=1.00.ckpt", 4, 60);
  CHECK(found(c)->folder == run("x-20260102-000000-2"));
  CHECK(mark(found(c)) == 3);  // `last` comes first, whatever the times say: copying changes them
}

TEST_CASE("resume auto: finds what make_run_folder made") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs");
  for (int i = 0; i < 3; ++i) {  // the second and third get a number, if made within the second
    const Result<fs::path> made = make_run_folder(c, "configs/my config.v2.toml");
    REQUIRE(made);
    checkpoint(*made / "checkpoints/last.ckpt", i, 10 + i);
    const auto resume = found(c, "auto", "configs/my config.v2.toml");
    CHECK(mark(resume) == i);
    CHECK(resume->folder == *made);
  }
}

TEST_CASE("resume auto: runs of other configurations are left alone, also if the names begin alike") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs");
  const auto add = [&](const std::string& name, int mark, int minute) {
    checkpoint(folder / "runs" / name / "checkpoints/last.ckpt", mark, minute);
  };
  add("y-20260101-000000", 1, 90);
  add("x-small-20260101-000000", 2, 90);  // of x-small.toml
  add("x-2-20260101-000000", 3, 90);      // of x-2.toml
  add("x-mine", 4, 90);                   // has a name of its own
  CHECK_FALSE(found(c));
  add("x-20260101-000000", 5, 10);
  CHECK(mark(found(c)) == 5);
  CHECK(mark(found(c, "auto", "x-small.toml")) == 2);
  CHECK(mark(found(c, "auto", "x-2.toml")) == 3);
}

TEST_CASE("cut lines: keeps the first so many, whole") {
  CHECK(cut("one\ntwo\nthree\n", 2) == "2:one\ntwo\n");
  CHECK(cut("one\ntwo\nthree\n", 3) == "3:one\ntwo\nthree\n");
  CHECK(cut("one\ntwo\nthree\n", 0) == "0:");
  CHECK(cut("one\n\n\nfour\n", 3) == "3:one\n\n\n");  // empty lines count
  CHECK(cut("one\r\ntwo\r\n", 1) == "1:one\r\n");
  CHECK(cut(std::string("o\0e\ntwo\n", 8), 1) == std::string("1:o\0e\n", 6));
  CHECK(cut(std::string(100'000, 'x') + "\ntwo\n", 1) == "1:" + std::string(100'000, 'x') + "\n");
  CHECK(cut("", 5) == "0:");
}

TEST_CASE("cut lines: a torn last line goes, even if fewer lines are there than asked for") {
  CHECK(cut("one\ntwo\n", 9) == "2:one\ntwo\n");
  CHECK(cut("one\ntwo\nthr", 9) == "2:one\ntwo\n");
  CHECK(cut("one\ntwo\nthr", 3) == "2:one\ntwo\n");
  CHECK(cut("one\ntwo\nthr", 2) == "2:one\ntwo\n");
  CHECK(cut("one\ntwo\nthr", 1) == "1:one\n");
  CHECK(cut("on", 1) == "0:");
}

TEST_CASE("cut lines: a file that is not there stays so, and one that cannot be cut is an error") {
  const TemporaryFolder folder;
  const Result<std::size_t> none = cut_lines(folder / "none", 3);
  REQUIRE(none);
  CHECK(*none == 0);
  CHECK_FALSE(fs::exists(folder / "none"));
  fs::create_directory(folder / "metrics.jsonl");
  const Result<std::size_t> status = cut_lines(folder / "metrics.jsonl", 3);
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), (folder / "metrics.jsonl").string()));
}

TEST_CASE("run folder: one process at a time") {
  const TemporaryFolder folder;
  const auto first = lock_run_folder(folder.path());
  REQUIRE(first);
  const auto second = lock_run_folder(folder.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().cause == "another process is writing to this run");
  CHECK_FALSE(lock_run_folder(folder / "nowhere"));
}

TEST_CASE("resume auto: a checkpoint that cannot be read is not taken for a damaged one") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs", "mine");
  const fs::path checkpoints = folder / "runs/mine/checkpoints";
  checkpoint(checkpoints / "previous.ckpt", 1, 10);
  fs::create_directory(checkpoints / "last.ckpt");  // opens, and cannot be read
  CHECK(has(failure(c), "last.ckpt"));
  fs::remove(checkpoints / "last.ckpt");
  CHECK(mark(found(c)) == 1);
}

TEST_CASE("resume: what is damaged is set aside under another name") {
  const TemporaryFolder folder;
  write_file(folder / "last.ckpt", "x");
  REQUIRE(set_aside(folder / "last.ckpt"));
  CHECK_FALSE(fs::exists(folder / "last.ckpt"));
  CHECK(read_text(folder / "last.ckpt.damaged") == "x");
}

TEST_CASE("resume auto: a folder that cannot be listed is not an empty one") {
  const TemporaryFolder folder;
  const Config c = config_in(folder / "runs", "mine"), any = config_in(folder / "runs");
  const fs::path run = folder / "runs/mine", checkpoints = run / "checkpoints";
  fs::create_directories(run);
  CHECK_FALSE(found(c));  // not there at all
  fs::create_directory_symlink("checkpoints", checkpoints);
  CHECK(has(failure(c), checkpoints.string() + ": cannot be listed: Too many levels of symbolic links"));
  fs::remove(checkpoints);
  fs::create_directory_symlink("/no/such/disk", checkpoints);
  CHECK(has(failure(c), checkpoints.string() + ": cannot be listed: No such file or directory"));
  fs::remove(checkpoints);
  write_file(checkpoints, "a file");
  CHECK(has(failure(c), checkpoints.string() + ": cannot be listed: Not a directory"));
  fs::remove(checkpoints);

  checkpoint(folder / "runs/x-20260101-000000/checkpoints/last.ckpt", 1, 10);
  write_file(folder / "runs/x-20260102-000000", "a file, and no run");
  CHECK(mark(found(any)) == 1);
  fs::create_directories(folder / "runs/x-20260103-000000");
  write_file(folder / "runs/x-20260103-000000/checkpoints", "a file");
  CHECK(has(failure(any), "x-20260103-000000/checkpoints: cannot be listed"));
  CHECK(has(failure(config_in(folder / "runs/x-20260102-000000")), "cannot be listed: Not a directory"));
  fs::remove_all(folder / "runs/x-20260103-000000");
  fs::create_directory_symlink("/no/such/disk", folder / "runs/x-20260103-000000");
  CHECK(has(failure(any), "x-20260103-000000: No such file or directory"));
  fs::remove(folder / "runs/x-20260103-000000");
  fs::create_symlink("loop.ckpt", folder / "runs/x-20260101-000000/checkpoints/loop.ckpt");
  CHECK(has(failure(any), "loop.ckpt: Too many levels"));
}

TEST_CASE("run folder: a fork of a run adds a number to its name, and takes no other's") {
  const TemporaryFolder folder;
  const Config a = config_in(folder / "runs", "a"), b = config_in(folder / "runs", "b");
  const Result<fs::path> origin = make_run_folder(a, "x.toml");
  REQUIRE(origin);
  for (const std::string name : {"a-2", "a-3"}) {
    const Result<fs::path> fork = name_of_fork(a, "x.toml", *origin);
    REQUIRE_MESSAGE(fork, fork.error().text());
    CHECK(*fork == folder / ("runs/" + name));
    fs::create_directory(*fork);
  }
  CHECK(name_of_fork(b, "x.toml", *origin));
  REQUIRE(make_run_folder(b, "x.toml"));
  CHECK_FALSE(name_of_fork(b, "x.toml", *origin));
  CHECK_FALSE(make_run_folder(a, "x.toml"));
}

TEST_CASE("run folder: the lists of former ranks are found though some ranks have none") {
  const TemporaryFolder folder;
  for (const char* name : {"quarantine.jsonl", "quarantine.rank1.jsonl", "quarantine.rank3.jsonl",
                           "quarantine.rank12.jsonl", "quarantine.rank5.jsonl.old", "quarantine.rankx.jsonl"})
    write_file(folder / name, std::string("{}\n"));
  Result<std::vector<fs::path>> found = lists_of_former_ranks(folder.path(), 2);
  REQUIRE(found);
  std::sort(found->begin(), found->end());
  CHECK(*found ==
        std::vector<fs::path>{folder / "quarantine.rank12.jsonl", folder / "quarantine.rank3.jsonl"});
}

TEST_CASE("run folder: whether a run is there") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("/no/such/disk", folder / "link");
  CHECK(*is_run_there(folder.path()));
  CHECK_FALSE(*is_run_there(folder / "none"));
  CHECK_FALSE(*is_run_there({}));
  CHECK(has(is_run_there(folder / "file").error().text(), "is not a folder"));
  CHECK(has(is_run_there(folder / "loop").error().text(), "Too many levels"));
  CHECK(has(is_run_there(folder / "link").error().text(), "No such file"));
}

TEST_CASE("copy lines: the first so many, whole, and the old file stays") {
  const TemporaryFolder folder;
  write_file(folder / "a", "one\ntwo\nthr");
  REQUIRE(copy_lines(folder / "a", folder / "b", 9));
  CHECK(read_text(folder / "b") == "one\ntwo\n");
  REQUIRE(copy_lines(folder / "a", folder / "c", 1));
  CHECK(read_text(folder / "c") == "one\n");
  REQUIRE(copy_lines(folder / "none", folder / "d", 1));
  CHECK_FALSE(fs::exists(folder / "d"));
  CHECK(read_text(folder / "a") == "one\ntwo\nthr");
  fs::create_directory(folder / "folder");
  CHECK_FALSE(copy_lines(folder / "folder", folder / "d", 1));
}
