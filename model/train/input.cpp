#include "model/train/input.hpp"

namespace sluice {
namespace {

at::ScalarType converted(at::Device where, at::ScalarType type) {
  return where.is_cpu() || type == at::kDouble ? at::kFloat : type;
}

Output output(at::ScalarType type) {
  return type == at::kHalf ? Output::fp16 : type == at::kBFloat16 ? Output::bf16 : Output::fp32;
}

}  // namespace

Input::Input(std::shared_ptr<Device> device, at::Device where, at::ScalarType type, std::int64_t max_pixels,
             const Affine& affine, bool channels_last)
    : device_(std::move(device)),
      type_(type),
      memory_(at::empty({3 * max_pixels}, at::TensorOptions(where).dtype(converted(where, type)))),
      affine_(affine),
      channels_last_(channels_last) {}

at::Tensor Input::samples(const DeviceBatch& batch, const Mix& mix) {
  const at::Tensor all = images(batch.samples, batch.count, batch.sample.width(), mix);
  return channels_last_ ? all : all.contiguous();
}

at::Tensor Input::labels(const DeviceBatch& batch) const {
  return labels(static_cast<const std::int32_t*>(batch.labels), batch.count);
}

at::Tensor Input::label_room(std::int64_t count) const {
  return at::zeros({count}, at::TensorOptions(memory_.device()).dtype(at::kLong));
}

at::Tensor Input::images(const std::uint8_t* pixels, std::int64_t count, std::int64_t size, const Mix& mix) {
  TORCH_CHECK(mix.kind == Mix::Kind::none || count % 2 == 0, "a batch of ", count,
              " images cannot be mixed in pairs");
  const std::int64_t total = count * size * size;
  TORCH_CHECK(total <= max_pixels(), "a batch of ", count, " images at ", size,
              " px is larger than what was prepared");
  const Status done =
      device_->convert({pixels, memory_.data_ptr(), output(memory_.scalar_type()),
                        static_cast<std::size_t>(count), static_cast<int>(size), affine_, mix});
  TORCH_CHECK(done, done.error().text());
  const at::Tensor images =
      memory_.narrow(0, 0, 3 * total).view({count, size, size, 3}).permute({0, 3, 1, 2});
  return type_ == at::kDouble ? images.to(at::kDouble) : images;
}

at::Tensor Input::labels(const std::int32_t* labels, std::int64_t count) const {
  const auto options = at::TensorOptions(memory_.device()).dtype(at::kInt);
  return at::from_blob(const_cast<std::int32_t*>(labels), {count}, options).to(at::kLong);
}

}  // namespace sluice
