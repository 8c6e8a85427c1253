#include "model/train/precision.hpp"

namespace sluice {

Result<Precision> parse_precision(const std::string& name, at::Device device) {
  if (name == "fp32") return Precision{};
  if (name == "tf32") return Precision{.tf32 = true};
  if (name == "bf16") return Precision{.compute = at::kBFloat16};
  if (name == "fp16") {
    if (device.is_cuda()) return Precision{.compute = at::kHalf, .scaled = true};
    return Error{"model", "model.precision", "fp16 needs a GPU, and this run is on the CPU",
                 "take fp32 or bf16 (--set model.precision=fp32)"};
  }
  if (name == "fp64") {
    if (device.is_cpu()) return Precision{.compute = at::kDouble};
    return Error{"model", "model.precision", "fp64 is for checks on the CPU, and this run is on a GPU",
                 "take fp32 (--set model.precision=fp32), or --set model.device=cpu"};
  }
  return Error{"model", "model.precision", "there is no precision \"" + name + "\"",
               "take one of fp32, tf32, bf16, fp16, fp64"};
}

// Both ways: cuDNN would use TF32 for fp32 by itself.
void apply(const Precision& precision) {
  at::globalContext().setAllowTF32CuBLAS(precision.tf32);
  at::globalContext().setAllowTF32CuDNN(precision.tf32);
}

Autocast::Autocast(const Precision& precision, at::Device device)
    : type_(device.type()), on_(precision.compute == at::kHalf || precision.compute == at::kBFloat16) {
  if (!on_) return;
  at::autocast::set_autocast_enabled(type_, true);
  at::autocast::set_autocast_dtype(type_, precision.compute);
}

Autocast::~Autocast() {
  if (!on_) return;
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(type_, false);
}

}  // namespace sluice
