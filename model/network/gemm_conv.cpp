#include "model/network/gemm_conv.hpp"

namespace sluice {

bool gemm_is_faster(const ConvShape& conv, const at::Tensor& images, const at::Tensor& weight) {
  const auto last = at::MemoryFormat::ChannelsLast;
  const ConvSetting setting{
      .cpu = images.is_cpu(),
      .single = images.scalar_type() == at::kFloat && !at::autocast::is_autocast_enabled(at::kCPU),
      .channels_last = images.is_contiguous(last) && weight.is_contiguous(last)};
  return gemm_is_faster(conv, images.size(2) * images.size(3), setting);
}

at::Tensor gemm_conv(const at::Tensor& images, const at::Tensor& weight) {
  const std::int64_t n = images.size(0), in = images.size(1), h = images.size(2), w = images.size(3);
  const std::int64_t out = weight.size(0);
  // [n, h, w, row of the window, column of the window, in]: one row of the matrix for each pixel.
  const at::Tensor padded = at::constant_pad_nd(images.permute({0, 2, 3, 1}), {0, 0, 1, 1, 1, 1});
  const at::Tensor windows = padded.unfold(1, 3, 1).unfold(2, 3, 1).permute({0, 1, 2, 4, 5, 3});
  const at::Tensor rows = windows.reshape({n * h * w, 9 * in});
  const at::Tensor kernel = weight.permute({0, 2, 3, 1}).reshape({out, 9 * in});
  return at::mm(rows, kernel.t()).view({n, h, w, out}).permute({0, 3, 1, 2});
}

}  // namespace sluice
