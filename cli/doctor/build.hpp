// Doctor's words on the build: against the driver, and by which library ranks exchange gradients.
#pragma once

#include <optional>
#include <string>

#include "model/device/version.hpp"
#include "run/launch/checklist.hpp"
#include "run/plan/gpu_driver.hpp"

namespace sluice {

void look_at_driver(Checklist& list, const std::optional<GpuDriver>& driver, const Versions& build);

// `device`: "cpu" or "cuda"; empty if there is none.
void look_at_exchange(Checklist& list, const std::string& device, const Versions& build);

}  // namespace sluice
