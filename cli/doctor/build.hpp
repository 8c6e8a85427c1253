// Doctor's words on the build: against the driver, by which library images are decoded, and by which one
// ranks exchange gradients.
#pragma once

#include <optional>
#include <string>

#include "model/device/version.hpp"
#include "run/launch/checklist.hpp"
#include "run/plan/gpu_driver.hpp"

namespace sluice {

void look_at_driver(Checklist& list, const std::optional<GpuDriver>& driver, const Versions& build);

// `version`: of the libjpeg-turbo that is loaded, see nodes/jpeg/library.hpp.
void look_at_jpeg(Checklist& list, const std::string& version);

// `device`: "cpu" or "cuda"; empty if there is none.
void look_at_exchange(Checklist& list, const std::string& device, const Versions& build);

}  // namespace sluice
