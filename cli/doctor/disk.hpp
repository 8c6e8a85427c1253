// Whether checkpoints can be written where a run would put them.
#pragma once

#include <cstddef>
#include <filesystem>

#include "run/launch/checklist.hpp"

namespace sluice {

// `folder` need not be there yet. `bytes`: what all checkpoints of a run take.
void look_at_disk(Checklist& list, std::filesystem::path folder, std::size_t bytes);

}  // namespace sluice
