#include "model/weights/checkpoint.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace sluice {
namespace {

constexpr std::pair<at::ScalarType, const char*> types[] = {{at::kFloat, "f32"},     {at::kHalf, "f16"},
                                                            {at::kBFloat16, "bf16"}, {at::kDouble, "f64"},
                                                            {at::kInt, "i32"},       {at::kLong, "i64"}};

const char* name_of(at::ScalarType type) {
  for (const auto& [known, name] : types)
    if (known == type) return name;
  TORCH_CHECK(false, "a checkpoint cannot hold values of type ", type);
}

std::string describe(std::string_view dtype, at::IntArrayRef shape) {
  std::string text(dtype);
  for (std::size_t i = 0; i < shape.size(); ++i)
    text.append(i == 0 ? " " : "x").append(std::to_string(shape[i]));
  return text;
}

}  // namespace

void copy_out(const NamedTensors& tensors, Snapshot& into) {
  const at::NoGradGuard no_grad;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.nbytes() + 64;  // and padding
  into.data.reserve(bytes);  // growing piece by piece would hold it twice for a moment
  for (const auto& [name, tensor] : tensors) {
    const auto room = into.add(name, name_of(tensor.scalar_type()), tensor.sizes().vec());
    if (!room.empty())
      at::from_blob(room.data(), tensor.sizes(), at::TensorOptions(tensor.scalar_type())).copy_(tensor);
  }
}

Status fits(const Snapshot& snapshot, const NamedTensors& tensors) {
  const auto refuse = [&](std::string cause) -> Status {
    return Error{"checkpoint", snapshot.source, std::move(cause), "it was made for another configuration"};
  };
  for (const auto& [name, tensor] : tensors) {
    const StoredTensor* stored = snapshot.find(name);
    if (stored == nullptr) return refuse("tensor " + name + " is missing");
    const std::string has = printable(describe(stored->dtype, stored->shape));
    const std::string needs = describe(name_of(tensor.scalar_type()), tensor.sizes());
    if (has != needs) return refuse("tensor " + name + " is " + has + ", the run needs " + needs);
  }
  return Done{};
}

Status copy_in(const Snapshot& snapshot, const NamedTensors& tensors) {
  if (Status good = fits(snapshot, tensors); !good) return good;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const auto bytes = snapshot.bytes(*snapshot.find(name));
    if (bytes.empty()) continue;
    at::Tensor target = tensor;
    target.copy_(at::from_blob(const_cast<std::byte*>(bytes.data()), tensor.sizes(),
                               at::TensorOptions(tensor.scalar_type())));
  }
  return Done{};
}

Result<NamedTensors> fitting_weights(const Snapshot& weights, const NamedTensors& tensors) {
  const auto is = [](const std::string& name) {
    return [&](const auto& tensor) { return tensor.first == name; };
  };
  for (const StoredTensor& stored : weights.tensors)
    if (stored.name.starts_with("model.") && std::ranges::none_of(tensors, is(stored.name)))
      return Error{"weights", weights.source,
                   "has " + printable(stored.name.substr(6)) + ", which the network has not",
                   "set model.arch to the network that it was made for"};
  const StoredTensor* classifier = weights.find("model.fc.weight");
  const auto ours = std::ranges::find_if(tensors, is("model.fc.weight"));
  const bool other_classes = classifier != nullptr && ours != tensors.end() &&
                             classifier->shape.size() == 2 && ours->second.size(0) != classifier->shape[0];
  NamedTensors fitting;
  for (const auto& tensor : tensors) {
    if (other_classes && tensor.first.starts_with("model.fc.")) continue;
    if (tensor.first.ends_with("num_batches_tracked") && weights.find(tensor.first) == nullptr) continue;
    fitting.push_back(tensor);
  }
  return fitting;
}

}  // namespace sluice
