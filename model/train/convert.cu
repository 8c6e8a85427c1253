#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "model/train/convert_cuda.hpp"

namespace sluice {
namespace {

template <class T>
__global__ void convert_kernel(Conversion job) {
  convert_part(job, static_cast<T*>(job.out),
               static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x);
}

}  // namespace

int convert_cuda(const Conversion& job, CUstream_st* stream) {
  const std::size_t pixels =
      job.count * static_cast<std::size_t>(job.size) * static_cast<std::size_t>(job.size);
  if (pixels == 0) return cudaSuccess;
  constexpr unsigned threads = 256;
  constexpr std::size_t of_a_block = pixels_of_a_thread * threads;
  const auto blocks = static_cast<unsigned>((pixels + of_a_block - 1) / of_a_block);
  if (job.type == Output::fp32) convert_kernel<float><<<blocks, threads, 0, stream>>>(job);
  if (job.type == Output::fp16) convert_kernel<__half><<<blocks, threads, 0, stream>>>(job);
  if (job.type == Output::bf16) convert_kernel<__nv_bfloat16><<<blocks, threads, 0, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace sluice
