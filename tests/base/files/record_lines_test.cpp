#include "base/files/record_lines.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// The lines of a file, and behind them why it went no further, if it did not.
std::vector<std::string> read(const fs::path& file) {
  const Result<std::unique_ptr<RecordLines>> lines = RecordLines::open("resume", file);
  if (!lines) return {lines.error().text()};
  if (!*lines) return {"none"};
  std::vector<std::string> all;
  for (std::string line;;) {
    const Result<bool> more = (*lines)->next(line);
    if (!more) all.push_back(more.error().text());
    if (!more || !*more) return all;
    all.push_back(line);
  }
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("record lines: whole lines alone") {
  const TemporaryFolder folder;
  const auto of = [&](const std::string& text) {
    write_file(folder / "f", text);
    return read(folder / "f");
  };
  CHECK(of("").empty());
  CHECK(of("torn").empty());
  CHECK(of("\n") == Lines{""});
  CHECK(of("a\n\nb\ntorn") == Lines{"a", "", "b"});
  CHECK(of(std::string("a\0b\n", 4)) == Lines{std::string("a\0b", 3)});
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += std::to_string(i) + "\n";
  const Lines numbers = of(many);
  REQUIRE(numbers.size() == 100'000);
  CHECK(numbers[77'777] == "77777");
}

TEST_CASE("record lines: up to 1 MiB, and a longer one is refused by file and number") {
  const TemporaryFolder folder;
  const std::string longest(RecordLines::longest, 'x');
  write_file(folder / "f", "a\n" + longest + "\nb\n");
  CHECK(read(folder / "f") == Lines{"a", longest, "b"});
  const std::string refused =
      "resume: " + (folder / "f").string() +
      ": its line 2 is longer than 1 MiB, no record; remove that line, or start anew under another log.name";
  write_file(folder / "f", "a\n" + longest + "x\nb\n");
  CHECK(read(folder / "f") == Lines{"a", refused});
  write_file(folder / "f", std::string("a\n"));
  fs::resize_file(folder / "f", std::uintmax_t{600} << 30);
  CHECK(read(folder / "f") == Lines{"a", refused});
}

TEST_CASE("record lines: no file is not the same as one that cannot be read") {
  const Watchdog watchdog("record lines");
  const TemporaryFolder folder;
  CHECK(read(folder / "f") == Lines{"none"});
  fs::create_symlink("nowhere", folder / "link");
  CHECK(read(folder / "link")[0].find("No such file") != std::string::npos);
  CHECK(read(folder.path())[0].find("is a folder, not a file") != std::string::npos);
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(read(folder / "fifo")[0].find("is a FIFO, not a file") != std::string::npos);
}
