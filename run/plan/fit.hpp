// Whether a run fits into the memory of this host, as the plan has it. Every command that trains asks before
// it starts anything.
#pragma once

#include "run/launch/seat.hpp"
#include "run/plan/data.hpp"

namespace sluice {

// `device`: as resolve_device gives it. All ranks of the host count. The one with local rank 0 tells who
// takes what.
[[nodiscard]] Status fits_here(const Config& config, const std::string& device, const PlanData& data,
                               const Seat& seat = {});

// The same before data.synth makes its tree, if it has to: what it will make is known.
[[nodiscard]] Status fits_before_synth(const Config& config, const std::string& device,
                                       const Seat& seat = {});

}  // namespace sluice
