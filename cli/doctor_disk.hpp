// Whether checkpoints can be written where a run would put them.
#pragma once

#include <cstddef>
#include <filesystem>

#include "cli/checklist.hpp"
#include "cli/config.hpp"

namespace sluice {

// Bytes of all checkpoint files that a run has at the same time, for a network with so many parameters.
[[nodiscard]] std::size_t checkpoints_on_disk(const Config& config, std::size_t parameters);

// `folder` need not be there yet. `bytes`: what will be written; 0 if that is not known.
void look_at_disk(Checklist& list, std::filesystem::path folder, std::size_t bytes);

}  // namespace sluice
