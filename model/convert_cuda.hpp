// The CUDA side of convert.hpp: one kernel over a whole batch, queued on the given stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/convert.hpp"

struct CUstream_st;

namespace sluice {

enum class Output { fp32, fp16, bf16 };

// `in` and `out` are device memory of 3*pixels values. Returns the cudaError_t of the launch, 0 if it went
// well.
int convert_cuda(const std::uint8_t* in, void* out, Output type, std::size_t pixels, int size,
                 const Affine& affine, const Mix& mix, CUstream_st* stream);

}  // namespace sluice
