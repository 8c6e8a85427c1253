// Image classification on tensors: a ResNet, bytes normalised to channels-last images, cross entropy.
#include <stdexcept>

#include "model/network/resnet.hpp"
#include "model/train/input.hpp"
#include "model/train/tensor_task.hpp"

namespace sluice {
namespace {

Result<NetworkPointer> build(const StepOptions& o) {
  Result<ResNet> network = make_resnet(o.arch, o.classes, o.seed, o.zero_init);
  if (!network) return network.error();
  return NetworkPointer(network->ptr());
}

std::unique_ptr<BatchInput> make_input(const StepOptions& o, const std::shared_ptr<Device>& on,
                                       at::Device device, at::ScalarType compute) {
  const std::int64_t size = o.task.sample.width();
  return std::make_unique<Input>(on, device, compute, o.batch * size * size, make_affine(o.mean, o.std),
                                 o.channels_last);
}

BatchSums loss(const StepOptions& o, const at::Tensor& logits, const at::Tensor& labels, const Mix& mix) {
  return cross_entropy(logits, labels, o.label_smoothing, mix);
}

BatchSums recorded_loss(const StepOptions& o, const at::Tensor& logits, const at::Tensor& labels,
                        const MixOnDevice& mix) {
  return cross_entropy(logits, labels, o.label_smoothing, mix);
}

at::Tensor evaluate(NetworkModule& network, const at::Tensor& images) { return network.forward(images); }

constexpr TensorTask image_classification_task{build, make_input, loss, recorded_loss, evaluate};

}  // namespace

const TensorTask& tensor_task(const std::string& kind) {
  if (kind == image_classification_kind) return image_classification_task;
  throw std::logic_error("no such task: " + kind);
}

}  // namespace sluice
