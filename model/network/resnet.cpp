#include "model/network/resnet.hpp"

#include "model/network/gemm_conv.hpp"
#include "model/network/recompute.hpp"
#include "model/network/shape.hpp"
#include "model/network/sync_norm.hpp"

namespace sluice {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(const ConvShape& c) {
  return nn::Conv2d(
      nn::Conv2dOptions(c.in, c.out, c.kernel).stride(c.stride).padding(c.padding()).bias(false));
}

at::Tensor through(const ConvShape& shape, nn::Conv2d& conv, const at::Tensor& x) {
  return gemm_is_faster(shape, x, conv->weight) ? gemm_conv(x, conv->weight) : conv->forward(x);
}

// Where the input of a block has another shape than its output; empty elsewhere.
struct Shortcut {
  explicit Shortcut(const std::optional<ConvShape>& shape)
      : conv(shape ? convolution(*shape) : nullptr), norm(shape ? Norm(shape->out) : nullptr) {}
  nn::Conv2d conv;
  Norm norm;
};

// Convolutions with a norm behind each; their output is added to the shortcut. The shortcut is made before
// them, as in torchvision: the order in which weights are drawn depends on it.
class BlockImpl : public nn::Module {
 public:
  explicit BlockImpl(BlockShape shape) : shape_(std::move(shape)), shortcut_(shape_.shortcut) {
    for (std::size_t i = 0; i < shape_.convs.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      convs_.push_back(register_module("conv" + number, convolution(shape_.convs[i])));
      norms_.push_back(register_module("bn" + number, Norm(shape_.convs[i].out)));
    }
    if (!shortcut_.conv.is_empty())
      register_module("downsample", nn::Sequential(shortcut_.conv, shortcut_.norm));
  }

  at::Tensor forward(const at::Tensor& input) {
    if (!recompute_) return compute(input);
    return recompute([this](const at::Tensor& again) { return compute(again); }, input, parameters());
  }
  void recompute_it() { recompute_ = true; }

 private:
  at::Tensor compute(const at::Tensor& input) {
    at::Tensor x = input;
    const auto conv = [&](std::size_t i) { return through(shape_.convs[i], convs_[i], x); };
    for (std::size_t i = 0; i + 1 < convs_.size(); ++i) x = normalise_relu(norms_[i], conv(i));
    const at::Tensor shortcut =
        shortcut_.conv.is_empty() ? input : normalise(shortcut_.norm, shortcut_.conv->forward(input));
    return normalise_add_relu(norms_.back(), conv(convs_.size() - 1), shortcut);
  }

  const BlockShape shape_;
  Shortcut shortcut_;
  std::vector<nn::Conv2d> convs_;
  std::vector<Norm> norms_;
  bool recompute_ = false;
};
TORCH_MODULE(Block);

void zero_last_norms(nn::Module& network, const NetworkShape& shape) {
  const at::NoGradGuard no_grad;
  const std::string last = ".bn" + std::to_string(shape.blocks.front().convs.size()) + ".weight";
  for (auto& parameter : network.named_parameters())
    if (parameter.key().ends_with(last)) parameter.value().zero_();
}

}  // namespace

ResNetImpl::ResNetImpl(const NetworkShape& shape, std::int64_t classes) {
  conv1_ = register_module("conv1", convolution(shape.stem));
  bn1_ = register_module("bn1", Norm(shape.stem.out));
  auto block = shape.blocks.begin();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    nn::Sequential layer;
    for (int left = shape.stages[i]; left > 0; --left) layer->push_back(Block(*block++));
    layers_[i] = register_module("layer" + std::to_string(i + 1), std::move(layer));
  }
  fc_ = register_module("fc", nn::Linear(shape.features(), classes));
  for (const auto& module : modules(false))
    if (auto* conv = module->as<nn::Conv2dImpl>())
      nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
}

at::Tensor ResNetImpl::stem(const at::Tensor& images) {
  return at::max_pool2d(normalise_relu(bn1_, conv1_->forward(images)), {3, 3}, {2, 2}, {1, 1});
}

at::Tensor ResNetImpl::forward(at::Tensor images) {
  at::Tensor x = recompute_ ? recompute([this](const at::Tensor& again) { return stem(again); }, images,
                                        {conv1_->weight, bn1_->weight, bn1_->bias})
                            : stem(images);
  for (auto& layer : layers_) x = layer->forward(x);
  return fc_->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

void ResNetImpl::recompute_blocks() {
  recompute_ = true;
  for (const auto& module : modules(false))
    if (auto* block = module->as<BlockImpl>()) block->recompute_it();
}

Result<ResNet> make_resnet(const std::string& arch, std::int64_t classes, std::uint64_t seed,
                           bool zero_init) {
  const ResNetKind* kind = resnet_kind(arch);
  if (!kind)
    return Error{"model", "model.arch", "there is no network \"" + arch + "\"",
                 "take one of resnet18, resnet34, resnet50, resnet101"};
  if (classes < 1) return Error{"model", "classes", "a network needs at least one class", ""};
  torch::manual_seed(seed);
  const NetworkShape shape = network_shape(*kind);
  ResNet network(shape, classes);
  if (zero_init) zero_last_norms(*network, shape);
  return network;
}

}  // namespace sluice
