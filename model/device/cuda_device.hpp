// A GPU behind the seam of device.hpp; in CUDA builds only.
#pragma once

#include "model/device/device.hpp"

namespace sluice {

[[nodiscard]] Result<std::shared_ptr<Device>> make_cuda_device(int index);

}  // namespace sluice
