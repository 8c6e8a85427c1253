#include "run/plan/gpu_driver.hpp"

#include <doctest/doctest.h>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("GPU driver: version and GPUs as /proc tells") {
  const TemporaryFolder root;
  CHECK_FALSE(gpu_driver(root.path().string()));
  write_file(root / "proc/driver/nvidia/version",
             std::string("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
                         "GCC version:  gcc version 12.2.0\n"));
  for (const char* gpu : {"0000:01:00.0", "0000:41:00.0"})
    write_file(root.path() / "proc/driver/nvidia/gpus" / gpu / "information", std::string("Model: A\n"));
  const auto driver = gpu_driver(root.path().string());
  REQUIRE(driver);
  CHECK(driver->version == "580.65.06");
  CHECK(driver->gpus == 2);
}

TEST_CASE("GPU driver: too old for a build by its branch") {
  CHECK(too_old("535.104.05", "13.0"));
  CHECK_FALSE(too_old("580.65.06", "13.0"));
  CHECK_FALSE(too_old("535.104.05", "12.4"));
  CHECK_FALSE(too_old("", "13.0"));
  CHECK_FALSE(too_old("535.104.05", ""));
}
