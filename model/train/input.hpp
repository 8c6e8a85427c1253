// A batch of pixels and labels in memory becomes the tensors that the network takes. The memory of the images
// is allocated once, for the largest batch, and used again by each batch.
#pragma once

#include "model/device/device.hpp"
#include "model/train/batch_input.hpp"

namespace sluice {

class Input : public BatchInput {
 public:
  // `type` is what the network computes with; the CPU always converts to float, and leaves the cast to
  // autocast. (Double is for checks: converted after that.)
  Input(std::shared_ptr<Device> device, at::Device where, at::ScalarType type, std::int64_t max_pixels,
        const Affine& affine, bool channels_last = true);

  // [count, 3, size, size].
  at::Tensor samples(const DeviceBatch& batch, const Mix& mix) override;
  [[nodiscard]] at::Tensor labels(const DeviceBatch& batch) const override;
  [[nodiscard]] at::Tensor label_room(std::int64_t count) const override;
  [[nodiscard]] std::size_t bytes() const override { return memory_.nbytes(); }

  // [count, 3, size, size], channels-last, valid until the next call. `pixels` is memory of the device.
  // A batch that is mixed has an even count.
  at::Tensor images(const std::uint8_t* pixels, std::int64_t count, std::int64_t size, const Mix& mix = {});
  [[nodiscard]] at::Tensor labels(const std::int32_t* labels, std::int64_t count) const;  // int64, a copy
  [[nodiscard]] std::int64_t max_pixels() const { return memory_.numel() / 3; }

 private:
  std::shared_ptr<Device> device_;
  at::ScalarType type_;
  at::Tensor memory_;
  Affine affine_;
  bool channels_last_;
};

}  // namespace sluice
