#include "model/weights/checkpoint_file.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/checksum.hpp"

#include "tests/support/crash_disk.hpp"
#include "tests/support/snapshots.hpp"

using namespace sluice;
using test::read_text;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

Snapshot sample() {
  Snapshot snapshot = test::filled({{"model.a", "f32", {2, 3}},
                                    {"model.b", "i64", {}},
                                    {"momentum.a", "bf16", {5}},
                                    {"empty", "f32", {0, 4}}});
  snapshot.state = {{"epoch", 3}, {"phase", "train"}, {"loss", 0.1}};
  return snapshot;
}

std::string refusal(const fs::path& path) {
  const auto read = read_checkpoint(path);
  return read ? "" : read.error().text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("checkpoint file: comes back as it was written") {
  const TemporaryFolder folder;
  const Snapshot written = sample();
  const fs::path path = folder.path() / "last.ckpt";
  REQUIRE(write_checkpoint(written, path));
  const auto read = read_checkpoint(path);
  REQUIRE(read);
  CHECK(read->arch == "resnet18");
  CHECK(read->classes == 10);
  CHECK(read->state == written.state);
  CHECK((read->data == written.data));
  CHECK(read->source == path.string());
  REQUIRE(read->tensors.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(read->tensors[i].name == written.tensors[i].name);
    CHECK(read->tensors[i].dtype == written.tensors[i].dtype);
    CHECK(read->tensors[i].shape == written.tensors[i].shape);
    CHECK(read->tensors[i].offset == written.tensors[i].offset);
    CHECK(read->tensors[i].bytes == written.tensors[i].bytes);
  }
  CHECK(read->find("model.b")->bytes == 8);
  CHECK(read->find("model.c") == nullptr);
  CHECK_FALSE(fs::exists(path.string() + ".partial"));
}

TEST_CASE("checkpoint file: any flipped bit, any cut and any extra byte is refused by name") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "last.ckpt";
  REQUIRE(write_checkpoint(sample(), path));
  const std::string sound = read_text(path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    const auto put = [&](int byte) {
      file.seekp(static_cast<std::streamoff>(bit / 8)).put(static_cast<char>(byte)).flush();
    };
    put(sound[bit / 8] ^ (1 << (bit % 8)));
    if (!has(refusal(path), "last.ckpt")) FAIL("bit " << bit << " went unseen");
    put(sound[bit / 8]);
  }
  REQUIRE(refusal(path).empty());
  for (std::size_t size = 0; size < sound.size(); ++size) {
    write_file(path, sound.substr(0, size));
    if (!has(refusal(path), "too short"))
      FAIL("a cut at " << size << " was not called too short: " << refusal(path));
  }
  write_file(path, sound + "x");
  CHECK(has(refusal(path), "too long"));
  std::string damaged = sound;
  damaged[sound.size() - 40] ^= 1;
  write_file(path, damaged);
  CHECK(has(refusal(path), "checksum"));
  write_file(path, std::string(1000, 'j'));
  CHECK(has(refusal(path), "not a checkpoint"));
  CHECK(has(refusal(folder.path() / "none.ckpt"), "No such file"));
}

TEST_CASE("checkpoint file: a header that lies is refused even with a fitting checksum") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "last.ckpt";
  REQUIRE(write_checkpoint(sample(), path));
  const auto rewrite = [&](const std::string& from, const std::string& to) {
    std::string bytes = read_text(path);
    REQUIRE(from.size() == to.size());
    bytes.replace(bytes.find(from), from.size(), to);
    bytes.resize(bytes.size() - 8);
    Checksum sum;
    sum.add(std::as_bytes(std::span(bytes)));
    const std::uint64_t value = sum.value();
    bytes.append(reinterpret_cast<const char*>(&value), 8);
    const fs::path changed = folder.path() / "changed.ckpt";
    write_file(changed, bytes);
    return refusal(changed);
  };
  CHECK(rewrite("\"i64\"", "\"i64\"").empty());
  CHECK(has(rewrite("[2,3]", "[9,9]"), "model.a"));
  CHECK(has(rewrite("[2,3]", "[-23]"), "model.a"));
  CHECK(has(rewrite("\"i64\"", "\"u64\""), "model.b"));
  CHECK(has(rewrite("\"version\":1", "\"version\":7"), "version 7"));
  CHECK(has(rewrite("\"version\":1", "\"wersion\":1"), "header"));
}

TEST_CASE("checkpoint file: a full disk is an error that names file and cause, and the old file stays") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "last.ckpt";
  REQUIRE(write_checkpoint(sample(), path));
  const std::string before = read_text(path);
  fs::create_symlink("/dev/full", path.string() + ".partial");
  const Status status = write_checkpoint(sample(), path);
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), path.string()));
  CHECK(has(status.error().text(), "No space left"));
  CHECK_FALSE(fs::is_symlink(path.string() + ".partial"));
  CHECK(read_text(path) == before);
}

TEST_CASE("checkpoint file: a crash at any moment leaves the old or the new one, and both can be read") {
  const TemporaryFolder folder;
  const fs::path path = folder / "last.ckpt";
  Snapshot snapshot = sample();
  REQUIRE(write_checkpoint(snapshot, path));
  snapshot.state["epoch"] = 4;
  test::CrashDisk disk(folder.path());
  REQUIRE(write_checkpoint(snapshot, path));
  CHECK(disk.unsafe().empty());
  int old = 0;
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    const auto read = read_checkpoint(left / "last.ckpt");
    REQUIRE_MESSAGE(read, read.error().text());
    old += read->state["epoch"] == 3;
    CHECK((read->state["epoch"] == 4 || (!over && read->state["epoch"] == 3)));
  });
  CHECK(old > 0);
}

TEST_CASE("checkpoint file: a write that stops short is an error and leaves nothing behind") {
  const TemporaryFolder folder;
  Snapshot large = sample();
  large.add("large", "f32", {100000});
  struct sigaction ignore {
  }, old_action{};
  ignore.sa_handler = SIG_IGN;
  rlimit old_limit{};
  ::sigaction(SIGXFSZ, &ignore, &old_action);
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = old_limit;
  limit.rlim_cur = 65536;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = write_checkpoint(large, folder.path() / "last.ckpt");
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::sigaction(SIGXFSZ, &old_action, nullptr);
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), "File too large"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("checkpoint file: a folder that is not there is an error") {
  const TemporaryFolder folder;
  const Status status = write_checkpoint(sample(), folder.path() / "none" / "last.ckpt");
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), "No such file"));
}
