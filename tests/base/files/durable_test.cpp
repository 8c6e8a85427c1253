#include "base/files/durable.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <functional>

#include "base/descriptor.hpp"
#include "base/files/line.hpp"
#include "base/files/write.hpp"
#include "tests/support/crash_disk.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

const std::string old_text = "the old content", new_text = "another, longer than the one before it";

Status put(const fs::path& path, const std::string& text) {
  const auto all = std::as_bytes(std::span(text));
  const std::array<std::span<const std::byte>, 2> parts{all.first(5), all.subspan(5)};
  return replace_file("test", path, parts);
}

// Shows what `change` does to `file` of a folder in which it has the old content: after each crash either the
// old or the new one is there, whole, and once all is over the new one. How many were something else.
int spoilt(
    const std::function<bool(const fs::path& folder)>& change, const std::string& wanted,
    const std::function<void(CrashDisk&)>& set = [](CrashDisk&) {}) {
  const TemporaryFolder folder;
  write_file(folder / "file", old_text);
  write_file(folder / "other", new_text);
  CrashDisk disk(folder.path());
  set(disk);
  REQUIRE(change(folder.path()));
  REQUIRE(read_text(folder / "file") == wanted);
  int bad = 0, looked = 0;
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    const std::string found = fs::exists(left / "file") ? read_text(left / "file") : "nothing";
    bad += found != wanted && (over || found != old_text);
    ++looked;
  });
  CHECK(looked >= 9);
  CHECK((bad > 0 || disk.unsafe().empty()));
  return bad;
}

// Calls that fail with the given numbers, one after the other; 0: go through.
struct Failing : FileCalls {
  int fsync(int file) override { return fails(syncs) ? -1 : FileCalls::fsync(file); }
  int open(const char* path, int flags, mode_t mode) override {
    return (flags & O_DIRECTORY) && fails(folders) ? -1 : FileCalls::open(path, flags, mode);
  }
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    ++writes;
    if (fails(written)) return -1;
    return FileCalls::write(file, bytes, short_writes ? 1 : size);
  }
  static bool fails(std::vector<int>& how) {
    if (how.empty()) return false;
    errno = how.front();
    how.erase(how.begin());
    return errno != 0;
  }
  std::vector<int> syncs, folders, written;
  bool short_writes = false;
  int writes = 0;
};

}  // namespace

TEST_CASE("durable: content is synced before the rename that publishes it, and the folder after it") {
  const TemporaryFolder folder;
  CrashDisk disk(folder.path());
  REQUIRE(put(folder / "file", new_text));
  CHECK(disk.calls() == std::vector<std::string>{"create file.partial", "write file.partial",
                                                 "sync file.partial", "rename file.partial file", "sync ."});
  CHECK(disk.unsafe().empty());
}

TEST_CASE("durable: a crash at any moment leaves the old or the new file, whole") {
  const auto parts = [](const fs::path& path) { return bool(put(path, new_text)); };
  CHECK(spoilt([&](const fs::path& f) { return parts(f / "file"); }, new_text) == 0);
  CHECK(spoilt([&](const fs::path& f) { return parts(f / "file") && parts(f / "file"); }, new_text) == 0);
  CHECK(spoilt(
            [&](const fs::path& f) {
              write_file(f / "file.partial", "left by a crash before");
              return parts(f / "file");
            },
            new_text) == 0);
  CHECK(spoilt([](const fs::path& f) { return bool(copy_file("test", f / "other", f / "file")); },
               new_text) == 0);
  CHECK(spoilt([](const fs::path& f) { return link_file(f / "other", f / "file"); }, new_text) == 0);
  CHECK(spoilt([](const fs::path& f) { return move_file(f / "other", f / "file"); }, new_text) == 0);
  CHECK(spoilt([](const fs::path& f) { return cut_file(f / "file", 7); }, old_text.substr(0, 7)) == 0);
  CHECK(spoilt(
            [](const fs::path& f) {
              const auto all = std::as_bytes(std::span(new_text));
              return bool(write_output("test", f / "file", {&all, 1}));
            },
            new_text) == 0);
}

TEST_CASE("durable: the crash disk notices what a writer could forget") {
  const auto change = [](const fs::path& f) { return bool(put(f / "file", new_text)); };
  CHECK(spoilt(change, new_text, [](CrashDisk& disk) { disk.lies = true; }) > 0);
  CHECK(spoilt(change, new_text, [](CrashDisk& disk) { disk.folders_lie = true; }) > 0);
  const TemporaryFolder folder;
  CrashDisk disk(folder.path());
  disk.lies = disk.folders_lie = true;
  REQUIRE(put(folder / "file", new_text));
  CHECK(disk.unsafe() ==
        std::vector<std::string>{"not synced before: rename file.partial file",
                                 "the folder is not synced after: create file.partial",
                                 "the folder is not synced after: rename file.partial file"});
}

TEST_CASE("durable: a folder that was filled under another name is there as a whole") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "staged");
  CrashDisk disk(folder.path());
  REQUIRE(put(folder / "staged/a", old_text));
  REQUIRE(put(folder / "staged/b", new_text));
  REQUIRE(move_file(folder / "staged", folder / "named"));
  CHECK(disk.unsafe().empty());
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    if (!over && !fs::exists(left / "named/a")) return;
    CHECK(read_text(left / "named/a") == old_text);
    CHECK(read_text(left / "named/b") == new_text);
  });
}

TEST_CASE("append file: a crash leaves whole lines in order, and all that were synced") {
  const TemporaryFolder folder;
  write_file(folder / "lines", "one\ntor");
  CrashDisk disk(folder.path());
  {
    auto file = open_lines((folder / "lines").string());
    REQUIRE(file);
    REQUIRE((*file)->append("two\n"));
    REQUIRE((*file)->sync());
    REQUIRE((*file)->append("three\n"));
    REQUIRE((*file)->append("four\n"));
    REQUIRE((*file)->sync());
  }
  int shorter = 0;
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    REQUIRE(open_lines((left / "lines").string()));
    const std::string found = read_text(left / "lines"), all = "one\ntwo\nthree\nfour\n";
    CHECK(all.starts_with(found));
    CHECK(found.starts_with("one\n"));
    if (over) CHECK(found == all);
    shorter += found != all;
  });
  CHECK(shorter > 0);
}

TEST_CASE("durable: what cannot be synced is an error, and the old file stays") {
  const TemporaryFolder folder;
  write_file(folder / "file", old_text);
  Failing calls;
  const ReplacedFileCalls replaced(calls);
  for (const int error : {EIO, EINVAL, EROFS, ENOSPC}) {
    CAPTURE(error);
    calls.syncs = {EINTR, EINTR, error};  // an interrupted one is asked for again
    const Status failed = put(folder / "file", new_text);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().cause == "cannot write to disk: " + std::generic_category().message(error));
    CHECK(calls.syncs.empty());
    CHECK(read_text(folder / "file") == old_text);
    CHECK_FALSE(fs::exists(folder / "file.partial"));
  }
  calls.syncs = {0, EIO};  // the folder's
  const Status failed = put(folder / "file", new_text);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().cause == "cannot write the folder to disk: Input/output error");
}

TEST_CASE("durable: a folder that cannot be synced at all is no failure") {
  const TemporaryFolder folder;
  Failing calls;
  const ReplacedFileCalls replaced(calls);
  calls.syncs = {0, EINTR, EINVAL};
  CHECK(put(folder / "file", new_text));
  CHECK(calls.syncs.empty());
  calls.folders = {EACCES};
  CHECK(put(folder / "file", old_text));
  calls.folders = {EMFILE};
  CHECK_FALSE(put(folder / "file", old_text));
}

TEST_CASE("append file: one on a disk fails where that fails; a device has none") {
  const TemporaryFolder folder;
  Failing calls;
  const ReplacedFileCalls replaced(calls);
  auto file = AppendFile::open((folder / "lines").string());
  REQUIRE(file);
  for (const int error : {EIO, EINVAL, EROFS}) {
    calls.syncs = {error};
    CHECK_FALSE((*file)->sync());
  }
  calls.syncs = {0, EIO};  // the folder's, which is asked for until it was good once
  CHECK_FALSE((*file)->sync());
  CHECK((*file)->sync());
  calls.syncs = {0, EIO};
  CHECK((*file)->sync());
  CHECK(calls.syncs == std::vector<int>{EIO});
  auto device = AppendFile::open("/dev/null");
  REQUIRE(device);
  CHECK((*device)->sync());
}

TEST_CASE("write all: goes on after short and interrupted writes, and tells how far it came") {
  const TemporaryFolder folder;
  Failing calls;
  const ReplacedFileCalls replaced(calls);
  const Descriptor file(::open((folder / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  calls.short_writes = true;
  calls.written = {0, EINTR, 0, EINTR};
  CHECK(write_all(file.get(), std::string_view("abc")) == 3);
  CHECK(calls.writes == 5);
  calls.written = {0, EIO};
  CHECK(write_all(file.get(), std::string_view("def")) == 1);
  CHECK(errno == EIO);
  CHECK(read_text(folder / "file") == "abcd");
}
