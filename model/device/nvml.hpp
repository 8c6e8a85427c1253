// How busy a GPU is and how much of its memory is taken, as the driver's own library tells. That library is
// loaded at run time: without a driver there is none, and nothing is told.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/values.hpp"

namespace sluice {

struct GpuFigures {
  double utilisation = 0;    // percent of the time since the driver's last look
  std::uint64_t memory = 0;  // bytes in use, by all processes
};

class Nvml {
 public:
  static constexpr const char* driver_library = "libnvidia-ml.so.1";

  // Null where there is no driver or no such GPU. `bus_id` is as Device::bus_id gives it: numbers of GPUs
  // differ between CUDA and the driver.
  [[nodiscard]] static std::unique_ptr<Nvml> open(const std::string& bus_id,
                                                  const char* library = driver_library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::optional<GpuFigures> read() const;  // never waits for the GPU's work
  [[nodiscard]] std::string driver_version() const;      // empty where it is not told

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
};

// "gpu_util" (percent) and "gpu_memory_bytes" for metrics and the progress line; nothing where nothing is
// told.
[[nodiscard]] Values gpu_values(const Nvml* nvml);

}  // namespace sluice
