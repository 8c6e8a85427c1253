#include "cli/doctor/build.hpp"

#include <doctest/doctest.h>

using namespace sluice;
using Verdict = Checklist::Verdict;

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

TEST_CASE("doctor, JPEG: a library that this was not written for is slower, and is named") {
  const auto line = [](const std::string& version) {
    Checklist list;
    look_at_jpeg(list, version);
    return list.lines().back();
  };
  CHECK(line("2.1.5").verdict == Verdict::ok);
  CHECK(line("2.1.5").found == "libjpeg-turbo 2.1.5");
  CHECK(line("3.2.0").verdict == Verdict::warning);
  CHECK(
      line("3.2.0").found.starts_with("libjpeg-turbo 3.2.0, not checked with sluice's own entropy decoder"));
  CHECK(line("").verdict == Verdict::warning);
}
