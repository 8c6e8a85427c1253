// The part of a checkpoint that is its network: the "model." tensors, each perhaps in its averaged form
// ("ema."). Optimiser and position stay behind.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

inline constexpr std::string_view model_prefix = "model.", average_prefix = "ema.";

// Whether there is such a part, and one of averages if they are asked for.
Status has_network(const Snapshot& checkpoint, bool averaged);
// A copy of it, each tensor named `prefix` and its name in the network. Refused if it and the checkpoint take
// more than `memory` together.
Result<Snapshot> network_part(const Snapshot& checkpoint, bool averaged, const std::string& prefix,
                              std::uint64_t memory);

// Arch, classes and source, without the tensors.
[[nodiscard]] Snapshot empty_like(const Snapshot& from);

}  // namespace sluice
