// What numbers the network computes with: fp32, tf32 (fp32 stored, tensor cores multiply), bf16 or fp16
// through autocast, where weights stay fp32; fp64 for checks, slow.
#pragma once

#include <string>

#include "base/result.hpp"
#include "pch/torch.hpp"

namespace sluice {

struct Precision {
  at::ScalarType compute = at::kFloat;
  bool tf32 = false;
  bool scaled = false;  // needs a Scaler
};

Result<Precision> parse_precision(const std::string& name, at::Device device);

// Sets the process-wide switches of the backends.
void apply(const Precision& precision);

// Autocast for as long as it lives; nothing for fp32, tf32 and fp64. Casts of the weights are kept within it
// only.
class Autocast {
 public:
  Autocast(const Precision& precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType type_;
  bool on_;
};

}  // namespace sluice
