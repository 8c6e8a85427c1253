#include "cli/gpu_driver.hpp"

#include <doctest/doctest.h>

#include "cli/doctor_device.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using Verdict = Checklist::Verdict;

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

TEST_CASE("doctor, driver: against the build") {
  const auto verdict = [](const std::optional<GpuDriver>& driver, const std::string& cuda) {
    Checklist list;
    Versions build;
    build.cuda = cuda;
    look_at_driver(list, driver, build);
    return list.lines().back().verdict;
  };
  CHECK(verdict(std::nullopt, "") == Verdict::ok);
  CHECK(verdict(std::nullopt, "13.0") == Verdict::warning);
  CHECK(verdict(GpuDriver{"535.104.05", 1}, "") == Verdict::warning);
  CHECK(verdict(GpuDriver{"535.104.05", 1}, "13.0") == Verdict::fail);
  CHECK(verdict(GpuDriver{"580.65.06", 1}, "13.0") == Verdict::ok);
}

TEST_CASE("doctor, exchange: NCCL for GPUs, Gloo for the rest") {
  const auto found = [](const std::string& device, const std::string& nccl) {
    Checklist list;
    Versions build;
    build.nccl = nccl;
    look_at_exchange(list, device, build);
    return list.lines().back().found;
  };
  CHECK(found("cuda", "2.27.3") == "NCCL 2.27.3 between ranks");
  CHECK(found("cpu", "").starts_with("Gloo between ranks: this is a CPU build"));
  CHECK(found("cpu", "2.27.3").starts_with("Gloo between ranks on the CPU"));
}
