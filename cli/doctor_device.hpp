// Doctor's words on what a run would compute on, and by which library ranks exchange gradients.
#pragma once

#include <optional>
#include <string>

#include "cli/checklist.hpp"
#include "cli/gpu_driver.hpp"
#include "model/version.hpp"

namespace sluice {

// The driver against the build. Pure.
void look_at_driver(Checklist& list, const std::optional<GpuDriver>& driver, const Versions& build);

// `asked`: model.device. What it comes to, "cpu" or "cuda"; empty if there is none.
std::string look_at_device(Checklist& list, const std::string& asked);

// `device`: as above. Pure.
void look_at_exchange(Checklist& list, const std::string& device, const Versions& build);

}  // namespace sluice
