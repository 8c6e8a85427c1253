#include "run/train/memory_watch.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024;
constexpr std::int64_t second = 1'000'000'000;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("memory watch: a tenth, at least 256 MiB, may be taken above the plan") {
  const auto allowed = [](std::size_t planned) { return MemoryWatch(planned, nullptr).allowed(); };
  CHECK(allowed(0) == 256 * MiB);
  CHECK(allowed(1000 * MiB) == 1256 * MiB);
  CHECK(allowed(2560 * MiB) == 2816 * MiB);
  CHECK(allowed(10'000 * MiB) == 11'000 * MiB);
}

TEST_CASE("memory watch: tells once, by owner") {
  MemoryFigures now{1256 * MiB, 300 * MiB, 500 * MiB};
  MemoryWatch watch(1000 * MiB, [&] { return now; });
  CHECK_FALSE(watch.look(0));  // just within
  now.resident += 1;
  now.resident += 100 * MiB;
  const auto told = watch.look(2 * second);
  REQUIRE(told);
  INFO(*told);
  CHECK(has(*told, "has 1356.0 MiB"));
  CHECK(has(*told, "1000.0 MiB were planned"));
  CHECK(has(*told, "data path 300.0 MiB"));
  CHECK(has(*told, "torch's tensors 500.0 MiB"));
  CHECK(has(*told, "the rest 556.0 MiB"));
  now.resident *= 2;
  CHECK_FALSE(watch.look(4 * second));
}

TEST_CASE("memory watch: looks every two seconds, and the first time at once") {
  int looks = 0;
  MemoryWatch watch(1000 * MiB, [&] {
    ++looks;
    return MemoryFigures{};
  });
  for (std::int64_t now = 7 * second; now < 17 * second; now += second / 10) CHECK_FALSE(watch.look(now));
  CHECK(looks == 5);
}

TEST_CASE("memory watch: owners that say more than there is leave no rest below zero") {
  MemoryWatch watch(0, [] { return MemoryFigures{300 * MiB, 200 * MiB, 200 * MiB}; });
  const auto told = watch.look(0);
  REQUIRE(told);
  CHECK(has(*told, "the rest 0 KiB"));
}

TEST_CASE("memory watch: the resident size is read from the kernel") {
  CHECK(resident_bytes() > MiB);
  const TemporaryFolder root;
  write_file(root / "proc/self/status", "Name:\tx\nVmHWM:\t  999 kB\nVmRSS:\t   1234 kB\nRssAnon:\t 1 kB\n");
  CHECK(resident_bytes(root.path().string()) == 1234 * 1024);
  CHECK(resident_bytes((root / "nothing").string()) == 0);
}
