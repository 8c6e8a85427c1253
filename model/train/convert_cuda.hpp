// The CUDA side of convert.hpp: one kernel over a whole batch, queued on the given stream.
#pragma once

#include "model/train/convert.hpp"

struct CUstream_st;

namespace sluice {

// The job's memory is the device's. Returns the cudaError_t of the launch, 0 if it went well.
int convert_cuda(const Conversion& job, CUstream_st* stream);

}  // namespace sluice
