#include "cli/doctor/disk.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using Verdict = Checklist::Verdict;

TEST_CASE("doctor, disk: room for all checkpoints, in a folder that may not be there yet") {
  const TemporaryFolder folder;
  const auto verdict = [&](const std::filesystem::path& place, std::size_t bytes) {
    Checklist list;
    look_at_disk(list, place, bytes);
    return list.lines().back().verdict;
  };
  CHECK(verdict(folder / "runs/deep/below", 1000) == Verdict::ok);
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));
  CHECK(verdict(folder / "runs", std::size_t{1} << 60) == Verdict::fail);
  write_file(folder / "file", std::string("x"));
  CHECK(verdict(folder / "file", 1000) == Verdict::fail);
  CHECK(verdict("/proc/sys", 1) == Verdict::fail);
}
