#include "model/input.hpp"

#ifdef SLUICE_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "model/convert_cuda.hpp"
#endif

namespace sluice {
namespace {

void convert_on_cpu(const std::uint8_t* pixels, float* out, std::int64_t count, const Affine& affine) {
  at::parallel_for(0, count, /*grain_size=*/16384, [&](std::int64_t begin, std::int64_t end) {
    convert(pixels + 3 * begin, out + 3 * begin, static_cast<std::size_t>(end - begin), affine);
  });
}

void mix_on_cpu(const std::uint8_t* pixels, float* out, std::int64_t images, std::int64_t size,
                const Affine& affine, const Mix& mix) {
  const std::int64_t values = 3 * size * size;
  at::parallel_for(0, images, /*grain_size=*/1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      convert_mixed(pixels + i * values, pixels + (i ^ 1) * values, out + i * values, static_cast<int>(size),
                    affine, mix);
  });
}

#ifdef SLUICE_CUDA
void convert_on_gpu(const std::uint8_t* pixels, at::Tensor& out, std::int64_t count, std::int64_t size,
                    const Affine& affine, const Mix& mix) {
  const Output type = out.scalar_type() == at::kHalf       ? Output::fp16
                      : out.scalar_type() == at::kBFloat16 ? Output::bf16
                                                           : Output::fp32;
  const int code =
      convert_cuda(pixels, out.data_ptr(), type, static_cast<std::size_t>(count), static_cast<int>(size),
                   affine, mix, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_CHECK(static_cast<cudaError_t>(code));
}
#endif

}  // namespace

Input::Input(at::Device device, at::ScalarType type, std::int64_t max_pixels, const Affine& affine)
    : memory_(
          at::empty({3 * max_pixels}, at::TensorOptions(device).dtype(device.is_cpu() ? at::kFloat : type))),
      affine_(affine) {}

at::Tensor Input::images(const std::uint8_t* pixels, std::int64_t count, std::int64_t size, const Mix& mix) {
  const bool mixed = mix.kind != Mix::Kind::none;
  TORCH_CHECK(!mixed || count % 2 == 0, "a batch of ", count, " images cannot be mixed in pairs");
  const std::int64_t total = count * size * size;
  TORCH_CHECK(total <= max_pixels(), "a batch of ", count, " images at ", size,
              " px is larger than what was prepared");
  if (memory_.is_cpu() && mixed)
    mix_on_cpu(pixels, memory_.data_ptr<float>(), count, size, affine_, mix);
  else if (memory_.is_cpu())
    convert_on_cpu(pixels, memory_.data_ptr<float>(), total, affine_);
#ifdef SLUICE_CUDA
  if (memory_.is_cuda()) convert_on_gpu(pixels, memory_, total, size, affine_, mix);
#endif
  return memory_.narrow(0, 0, 3 * total).view({count, size, size, 3}).permute({0, 3, 1, 2});
}

at::Tensor Input::labels(const std::int32_t* labels, std::int64_t count) const {
  const auto options = at::TensorOptions(memory_.device()).dtype(at::kInt);
  return at::from_blob(const_cast<std::int32_t*>(labels), {count}, options).to(at::kLong);
}

}  // namespace sluice
