#include "nodes/read.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
using Kind = Outcome::Kind;

namespace {

ReadOptions quick() {
  ReadOptions o;
  o.max_file = 1000;
  o.tries = 4;
  o.first_pause = std::chrono::milliseconds(1);
  return o;
}

// Cuts the room into pieces of `piece` bytes.
auto into(std::vector<std::uint8_t>& buffer, std::size_t piece) {
  return [&buffer, piece](std::size_t bytes, std::vector<iovec>& where) {
    buffer.assign(bytes, 0);
    for (std::size_t at = 0; at < bytes; at += piece)
      where.push_back({buffer.data() + at, std::min(piece, bytes - at)});
    return true;
  };
}

}  // namespace

TEST_CASE("read: a whole file, in pieces of any size") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 777; ++i) text += static_cast<char>('a' + i % 26);
  write_file(folder / "x", text);
  for (const std::size_t piece : {1u, 16u, 776u, 777u, 5000u}) {
    std::vector<std::uint8_t> got;
    CHECK(read_file((folder / "x").string(), quick(), into(got, piece), Stop()).kind == Kind::done);
    CHECK(std::string(got.begin(), got.end()) == text);
  }
}

TEST_CASE("read: empty, too large, no room, missing, a folder") {
  const TemporaryFolder folder;
  write_file(folder / "empty", std::string());
  write_file(folder / "large", std::string(1001, 'x'));
  write_file(folder / "fits", std::string(1000, 'x'));
  std::vector<std::uint8_t> buffer;
  const Stop stop;
  const auto read = [&](const char* name) {
    return read_file((folder / name).string(), quick(), into(buffer, 100), stop);
  };

  CHECK(read("empty").kind == Kind::bad);
  CHECK(read("empty").error.cause == "empty file");
  CHECK(read("large").kind == Kind::bad);
  CHECK(read("large").error.cause.find("more than data.max_file") != std::string::npos);
  CHECK(read("fits").kind == Kind::done);
  CHECK(read_file((folder / "fits").string(), quick(), [](std::size_t, std::vector<iovec>&) { return false; },
                  stop)
            .kind == Kind::big);

  const Outcome missing = read("missing");
  CHECK(missing.kind == Kind::fatal);
  CHECK(missing.error.text().find("missing: No such file or directory") != std::string::npos);
  CHECK(read_file(folder.path().string(), quick(), into(buffer, 100), stop).kind == Kind::fatal);
}

TEST_CASE(
    "read: a file that has become a FIFO, a socket or a device is a bad image, and nobody waits for it") {
  const Watchdog watchdog("reading a FIFO");
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "fifo.JPEG").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "zero.JPEG");
  std::vector<std::uint8_t> buffer;
  for (const char* name : {"fifo.JPEG", "zero.JPEG"}) {
    const Outcome outcome = read_file((folder / name).string(), quick(), into(buffer, 100), Stop());
    CHECK(outcome.kind == Kind::bad);
    CHECK(outcome.error.text().find(", not a file; remove it or list it in data.exclude") !=
          std::string::npos);
  }
}

TEST_CASE("read: what may pass is tried again, what may not is not") {
  const Stop stop;
  int calls = 0;
  CHECK(with_retries(quick(), stop, [&] { return ++calls < 3 ? EIO : 0; }) == 0);
  CHECK(calls == 3);
  calls = 0;
  CHECK(with_retries(quick(), stop, [&] {
          ++calls;
          return ESTALE;
        }) == ESTALE);
  CHECK(calls == 4);
  calls = 0;
  CHECK(with_retries(quick(), stop, [&] {
          ++calls;
          return EACCES;
        }) == EACCES);
  CHECK(calls == 1);
}

TEST_CASE("read: a stop ends the waiting between tries") {
  const Watchdog dog("retry");
  Stop stop;
  ReadOptions slow = quick();
  slow.first_pause = std::chrono::hours(1);
  std::thread other([&] { stop.request(); });
  CHECK(with_retries(slow, stop, [] { return EIO; }) == EIO);
  other.join();
}
