// Which convolutions are done as one matrix product (model/network/gemm_conv.hpp). The network asks this
// before it computes, the memory plan before it counts. Free of torch.
#pragma once

#include "model/network/shape.hpp"

namespace sluice {

// How images and weights lie in memory, and what computes on them.
struct ConvSetting {
  bool cpu = false;
  bool single = false;  // both are float, and nothing casts them
  bool channels_last = false;
};

// True for 3x3 convolutions on the CPU where the product takes less time, forward and backward together.
// `pixels` of one image that goes in.
[[nodiscard]] bool gemm_is_faster(const ConvShape& conv, std::int64_t pixels, const ConvSetting& setting);

}  // namespace sluice
