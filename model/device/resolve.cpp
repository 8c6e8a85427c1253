#include <torch/cuda.h>

#include "model/train/train_step.hpp"

namespace sluice {

Result<std::string> resolve_device(const std::string& asked) {
  if (asked == "cpu") return asked;
  if (asked != "auto" && asked != "cuda")
    return Error{"model", "model.device", "there is no device \"" + asked + "\"",
                 "take one of auto, cpu, cuda"};
#ifdef SLUICE_CUDA
  if (torch::cuda::is_available()) return std::string("cuda");
  const char* why = "CUDA was asked for, but no GPU can be used on this machine";
  const char* hint = "check the driver with nvidia-smi, or run on the CPU: --set model.device=cpu";
#else
  const char* why = "CUDA was asked for, but this build has none";
  const char* hint = "build with `./sluice build --cuda`, or run on the CPU: --set model.device=cpu";
#endif
  if (asked == "auto") return std::string("cpu");
  return Error{"model", "model.device", why, hint};
}

std::string device_note(const std::string& asked, const std::string& got) {
#ifdef SLUICE_CUDA
  if (asked == "auto" && got == "cpu")
    return "model.device = \"auto\": no GPU can be used on this machine, so it runs on the CPU";
#endif
  (void)asked, (void)got;
  return "";
}

}  // namespace sluice
