// Between tensors and a Snapshot: named copies out to host memory, and back in after everything was checked.
// The stored layout is row-major whatever the memory format of the tensor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"
#include "pch/torch.hpp"

namespace sluice {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

void copy_out(const NamedTensors& tensors, Snapshot& into);
// Whether copy_in would take it.
Status fits(const Snapshot& snapshot, const NamedTensors& tensors);
// All or nothing: a tensor that is missing or has another type or shape refuses the snapshot by name.
Status copy_in(const Snapshot& snapshot, const NamedTensors& tensors);

// Of the network's `tensors`, those that start from `weights`: all, but for the classifier ("model.fc.") if
// that is for another number of classes, and for counters that old files lack. Refuses a file that has
// weights which the network has not.
Result<NamedTensors> fitting_weights(const Snapshot& weights, const NamedTensors& tensors);

}  // namespace sluice
