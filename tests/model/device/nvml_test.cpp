#include "model/device/nvml.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

using namespace sluice;

namespace {

// Kept open, so that its counts outlive the Nvml under test.
struct Fake {
  Fake() : library(dlopen(SLUICE_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) { REQUIRE(library != nullptr); }
  ~Fake() { dlclose(library); }
  [[nodiscard]] int count(const char* name) const {
    return reinterpret_cast<int (*)()>(dlsym(library, name))();
  }
  void break_it(bool now) const { reinterpret_cast<void (*)(bool)>(dlsym(library, "fake_break"))(now); }
  void* library;
};

}  // namespace

TEST_CASE("nvml: figures come from the driver's library, anew each time") {
  const Fake fake;
  {
    const auto nvml = Nvml::open("0000:65:00.0", SLUICE_FAKE_NVML);
    REQUIRE(nvml);
    CHECK(fake.count("fake_opened") == 1);
    CHECK(nvml->driver_version() == "580.65.06");
    for (int i = 1; i <= 3; ++i) {
      const auto figures = nvml->read();
      REQUIRE(figures);
      CHECK(figures->utilisation == 90 + i);
      CHECK(figures->memory == 20ull << 30);
      CHECK(fake.count("fake_looks") == i);
    }
    CHECK(gpu_values(nvml.get()) == Values{{"gpu_util", 94}, {"gpu_memory_bytes", 0x1p30 * 20}});
    fake.break_it(true);
    CHECK_FALSE(nvml->read());
    CHECK(gpu_values(nvml.get()).empty());
    fake.break_it(false);
    CHECK(nvml->read());
  }
  CHECK(fake.count("fake_opened") == 0);
}

TEST_CASE("nvml: nothing is told without a driver, by another library, or of a GPU that is not there") {
  CHECK_FALSE(Nvml::open("0000:65:00.0", "libnvidia-ml-that-is-not-there.so.1"));
  CHECK_FALSE(Nvml::open("0000:65:00.0", "libm.so.6"));
  CHECK(gpu_values(nullptr).empty());
  const Fake fake;
  CHECK_FALSE(Nvml::open("0000:01:00.0", SLUICE_FAKE_NVML));
  CHECK(fake.count("fake_opened") == 0);
}
