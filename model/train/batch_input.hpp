// A batch in memory of the device becomes the tensors that network and loss take: the part of a task that
// knows what the bytes mean.
#pragma once

#include "model/device/upload_ring.hpp"
#include "model/train/mix.hpp"
#include "pch/torch.hpp"

namespace sluice {

class BatchInput {
 public:
  virtual ~BatchInput() = default;
  // As the network takes them; valid until the next call.
  virtual at::Tensor samples(const DeviceBatch& batch, const Mix& mix) = 0;
  virtual at::Tensor labels(const DeviceBatch& batch) const = 0;  // a copy
  // An empty copy for the labels of so many samples: a recorded step has them in one place.
  [[nodiscard]] virtual at::Tensor label_room(std::int64_t count) const = 0;
  [[nodiscard]] virtual std::size_t bytes() const = 0;  // of the device, that it keeps
};

}  // namespace sluice
