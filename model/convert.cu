#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "model/convert_cuda.hpp"

namespace sluice {
namespace {

// Twelve bytes (four pixels) per thread: three aligned words in, whole pixels out.
template <class T>
__global__ void convert_kernel(const std::uint8_t* in, T* out, std::size_t pixels, Affine affine) {
  const std::size_t first = 4 * (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (first + 4 <= pixels) {
    std::uint32_t words[3];
    for (int i = 0; i < 3; ++i) words[i] = reinterpret_cast<const std::uint32_t*>(in + 3 * first)[i];
#pragma unroll
    for (int i = 0; i < 12; ++i) {
      const auto byte = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
      out[3 * first + i] = static_cast<T>(normalised(byte, affine.scale[i % 3], affine.shift[i % 3]));
    }
    return;
  }
  for (std::size_t at = 3 * first; at < 3 * pixels; ++at)
    out[at] = static_cast<T>(normalised(in[at], affine.scale[at % 3], affine.shift[at % 3]));
}

// One pixel per thread: mixed batches are rare enough in their cost (the network's is a thousand times that).
template <class T>
__global__ void mix_kernel(const std::uint8_t* in, T* out, std::size_t pixels, int size, Affine affine,
                           Mix mix) {
  const std::size_t pixel = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  const std::size_t area = static_cast<std::size_t>(size) * size;
  const std::size_t image = pixel / area, within = pixel % area;
  const std::size_t partner = (image ^ 1) * area + within;
  const bool swap = mix.kind == Mix::Kind::cutmix &&
                    inside(mix.box, static_cast<int>(within % size), static_cast<int>(within / size));
  for (int c = 0; c < 3; ++c) {
    const std::uint8_t own = in[3 * pixel + c], other = in[3 * partner + c];
    const float value = mix.kind == Mix::Kind::mixup ? blended(own, other, mix)
                                                     : static_cast<float>(swap ? other : own);
    out[3 * pixel + c] = static_cast<T>(value * affine.scale[c] + affine.shift[c]);
  }
}

template <class T>
void launch(const std::uint8_t* in, void* out, std::size_t pixels, int size, const Affine& affine,
            const Mix& mix, cudaStream_t stream) {
  constexpr unsigned threads = 256;
  if (mix.kind != Mix::Kind::none) {
    const auto blocks = static_cast<unsigned>((pixels + threads - 1) / threads);
    mix_kernel<T><<<blocks, threads, 0, stream>>>(in, static_cast<T*>(out), pixels, size, affine, mix);
    return;
  }
  const auto blocks = static_cast<unsigned>((pixels + 4 * threads - 1) / (4 * threads));
  convert_kernel<T><<<blocks, threads, 0, stream>>>(in, static_cast<T*>(out), pixels, affine);
}

}  // namespace

int convert_cuda(const std::uint8_t* in, void* out, Output type, std::size_t pixels, int size,
                 const Affine& affine, const Mix& mix, CUstream_st* stream) {
  if (pixels == 0) return cudaSuccess;
  if (type == Output::fp32) launch<float>(in, out, pixels, size, affine, mix, stream);
  if (type == Output::fp16) launch<__half>(in, out, pixels, size, affine, mix, stream);
  if (type == Output::bf16) launch<__nv_bfloat16>(in, out, pixels, size, affine, mix, stream);
  return cudaGetLastError();
}

}  // namespace sluice
