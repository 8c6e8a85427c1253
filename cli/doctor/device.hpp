// Doctor's words on what a run would compute on.
#pragma once

#include <string>

#include "run/launch/checklist.hpp"

namespace sluice {

// `asked`: model.device. What it comes to, "cpu" or "cuda"; empty if there is none.
std::string look_at_device(Checklist& list, const std::string& asked);

}  // namespace sluice
