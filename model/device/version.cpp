#include "model/device/version.hpp"

#include "pch/torch.hpp"
#include "torch/version.h"

#ifdef SLUICE_CUDA
#include <cuda_runtime.h>
#include <nccl.h>
#endif

namespace sluice {

Versions versions() {
  Versions found;
  found.torch = TORCH_VERSION;
  found.threads = at::get_num_threads();
#ifdef SLUICE_CUDA
  int number = 0;
  if (cudaRuntimeGetVersion(&number) == cudaSuccess)
    found.cuda = std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  if (ncclGetVersion(&number) == ncclSuccess)
    found.nccl = std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
                 std::to_string(number % 100);
#endif
  return found;
}

std::string version_text() {
  const Versions v = versions();
  std::string text = std::string("sluice ") + SLUICE_VERSION + ", libtorch " + v.torch;
  text += v.cuda.empty() ? ", CPU build" : ", CUDA " + v.cuda;
  if (!v.nccl.empty()) text += ", NCCL " + v.nccl;
  return text;
}

}  // namespace sluice
