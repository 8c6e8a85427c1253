#include "run/data/storage_probe.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("storage probe: every file is read once, whole, at any number in flight") {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const std::string text(100'000 * i, 'x');  // one is empty, one larger than a buffer
    bytes += text.size();
    files.push_back((folder / std::to_string(i)).string());
    write_file(files.back(), text);
  }
  for (const unsigned in_flight : {1u, 7u}) {
    CAPTURE(in_flight);
    const ReadFigures f = read_files(files, in_flight, 60s);
    CHECK(f.in_flight == in_flight);
    CHECK(f.files == 20);
    CHECK(f.bytes == bytes);
    CHECK(f.failed == 0);
    CHECK(f.median_ms <= f.slowest_ms);
    CHECK(f.images_per_s() == doctest::Approx(20 / f.seconds));
    CHECK(f.cached + f.unknown <= f.files);
  }
}

TEST_CASE("storage probe: a file that cannot be read is named and does not count") {
  const TemporaryFolder folder;
  write_file(folder / "a", std::string("abc"));
  const std::vector<std::string> files = {(folder / "a").string(), (folder / "gone").string(),
                                          folder.path().string()};
  const ReadFigures f = read_files(files, 1, 60s);
  CHECK(f.files == 1);
  CHECK(f.bytes == 3);
  CHECK(f.failed == 2);
  REQUIRE(f.failure);
  CHECK(f.failure->subject == files[1]);
  CHECK(f.failure->cause == "No such file or directory");
}

TEST_CASE("storage probe: starts nothing once its time is over") {
  const std::vector<std::string> files(100, "/dev/null");
  CHECK(read_files(files, 2, 0ms).files == 0);
  CHECK(read_files({}, 4, 60s).images_per_s() == 0);
}

TEST_CASE("spread: even, within bounds, and its halves differ") {
  CHECK(spread(10, 5) == std::vector<std::size_t>{0, 2, 4, 6, 8});
  CHECK(spread(10, 5, 0.5) == std::vector<std::size_t>{1, 3, 5, 7, 9});
  CHECK(spread(3, 5) == std::vector<std::size_t>{0, 1, 2});
  CHECK(spread(0, 5).empty());
  CHECK(spread(7, 0).empty());
  const std::vector<std::size_t> many = spread(1'281'167, 256, 0.5);
  CHECK(std::set(many.begin(), many.end()).size() == 256);
  CHECK(many.back() < 1'281'167);
}
