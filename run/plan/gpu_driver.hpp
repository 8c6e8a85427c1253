// The NVIDIA driver of this machine, as /proc tells, and whether it is new enough for a build.
#pragma once

#include <optional>
#include <string>

namespace sluice {

struct GpuDriver {
  std::string version;  // "580.65.06"
  unsigned gpus = 0;
};

// `root` is put before /proc, for tests. Nothing where no driver is loaded.
[[nodiscard]] std::optional<GpuDriver> gpu_driver(const std::string& root = "");

// The oldest driver branch for a CUDA version such as "13.0" (NVIDIA's minor-version compatibility); 0 if it
// is not known.
[[nodiscard]] int oldest_driver(const std::string& cuda);
[[nodiscard]] bool too_old(const std::string& driver, const std::string& cuda);

}  // namespace sluice
