#include "cli/doctor_machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/doctor_disk.hpp"
#include "cli/doctor_step.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using Verdict = Checklist::Verdict;

namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

const Checklist::Line* line(const Checklist& list, const std::string& name) {
  const auto at = std::ranges::find(list.lines(), name, &Checklist::Line::name);
  return at == list.lines().end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("doctor, machine: plenty passes, little warns") {
  Checklist list;
  look_at_machine(list, {8, 32 * GiB, "MemAvailable"}, {});
  CHECK(std::ranges::all_of(list.lines(), [](const auto& l) { return l.verdict == Verdict::ok; }));
  CHECK(line(list, "address space") == nullptr);

  Checklist poor;
  look_at_machine(poor, {1, GiB, "the cgroup's memory limit"},
                  {1 << 20, 256, 8 * GiB, "always madvise [never]"});
  for (const char* name : {"CPUs", "memory", "address space", "huge pages", "open files"}) {
    CAPTURE(name);
    REQUIRE(line(poor, name));
    CHECK(line(poor, name)->verdict == Verdict::warning);
    CHECK_FALSE(line(poor, name)->hint.empty());
  }
  CHECK(line(poor, "memory")->found.find("the cgroup's memory limit") != std::string::npos);
  CHECK_FALSE(poor.failed());
}

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

TEST_CASE("doctor, feed: names what the device would wait for") {
  const auto looked = [](const FeedFigures& f) {
    Checklist list;
    look_at_feed(list, f);
    return list.lines().empty() ? Checklist::Line{"", Verdict::ok, "", ""} : list.lines().back();
  };
  CHECK(looked({5000, 300, 60, 1}).verdict == Verdict::ok);
  const Checklist::Line storage = looked({190, 3000, 1000, 8, true});
  CHECK(storage.verdict == Verdict::warning);
  CHECK(storage.hint.find("wait for storage") != std::string::npos);
  const Checklist::Line decode = looked({5000, 300, 1000, 1, true});
  CHECK(decode.hint.find("wait for decoding") != std::string::npos);
  CHECK(looked({0, 300, 1000, 1, true}).name.empty());
}
