// Torch's tensors on the CPU, and oneDNN's scratch, in memory that is kept from step to step. Without it
// every large tensor is mapped, zeroed by the kernel page by page and unmapped again: a seventh of a step
// (ResNet-18 at 64 px) to a fifth (ResNet-50 at 224 px).
#pragma once

#include "model/device/kept_memory.hpp"

namespace sluice {

// From now on, for the whole process; again and again does no harm. Where addresses cannot be had (ulimit
// -v), torch goes on with its own allocator.
void keep_cpu_memory();

// All zero before keep_cpu_memory.
[[nodiscard]] KeptMemory::Usage cpu_memory();
void mark_cpu_memory();  // `recent` starts anew

}  // namespace sluice
