#include "cli/doctor/machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace sluice;
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
