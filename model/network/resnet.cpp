#include "model/network/resnet.hpp"

#include "model/network/gemm_conv.hpp"
#include "model/network/recompute.hpp"
#include "model/network/shape.hpp"
#include "model/network/sync_norm.hpp"

namespace sluice {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

at::Tensor through(nn::Conv2d& conv, const at::Tensor& x) {
  const bool product = gemm_is_faster(x, conv->weight, conv->options.stride()->at(0));
  return product ? gemm_conv(x, conv->weight) : conv->forward(x);
}

// Where the input of a block has another shape than its output; empty elsewhere.
struct Shortcut {
  nn::Conv2d conv{nullptr};
  Norm norm{nullptr};
};

// Two 3x3 convolutions, or 1x1, 3x3, 1x1 in a bottleneck; their output is added to the shortcut.
class BlockImpl : public nn::Module {
 public:
  BlockImpl(std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck, Shortcut shortcut)
      : shortcut_(std::move(shortcut)) {
    if (bottleneck) {
      add(convolution(in, width, 1, 1), width);
      add(convolution(width, width, 3, stride), width);
      add(convolution(width, 4 * width, 1, 1), 4 * width);
    } else {
      add(convolution(in, width, 3, stride), width);
      add(convolution(width, width, 3, 1), width);
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
    for (std::size_t i = 0; i + 1 < convs_.size(); ++i) x = normalise_relu(norms_[i], through(convs_[i], x));
    const at::Tensor shortcut =
        shortcut_.conv.is_empty() ? input : normalise(shortcut_.norm, shortcut_.conv->forward(input));
    return normalise_add_relu(norms_.back(), through(convs_.back(), x), shortcut);
  }

  void add(nn::Conv2d conv, std::int64_t channels) {
    const std::string number = std::to_string(convs_.size() + 1);
    convs_.push_back(register_module("conv" + number, std::move(conv)));
    norms_.push_back(register_module("bn" + number, Norm(channels)));
  }

  std::vector<nn::Conv2d> convs_;
  std::vector<Norm> norms_;
  Shortcut shortcut_;
  bool recompute_ = false;
};
TORCH_MODULE(Block);

void zero_last_norms(nn::Module& network, std::string_view name) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : network.named_parameters())
    if (parameter.key().ends_with(name)) parameter.value().zero_();
}

}  // namespace

ResNetImpl::ResNetImpl(std::array<int, 4> stages, bool bottleneck, std::int64_t classes) {
  conv1_ = register_module("conv1",
                           nn::Conv2d(nn::Conv2dOptions(3, channels_, 7).stride(2).padding(3).bias(false)));
  bn1_ = register_module("bn1", Norm(channels_));
  for (std::size_t i = 0; i < layers_.size(); ++i)
    layers_[i] = register_module("layer" + std::to_string(i + 1),
                                 stage(64 << i, stages[i], i == 0 ? 1 : 2, bottleneck));
  fc_ = register_module("fc", nn::Linear(channels_, classes));
  for (const auto& module : modules(false))
    if (auto* conv = module->as<nn::Conv2dImpl>())
      nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
}

// The shortcut is made before its block, as in torchvision: the order in which weights are drawn depends on
// it.
nn::Sequential ResNetImpl::stage(std::int64_t width, int blocks, std::int64_t stride, bool bottleneck) {
  const std::int64_t out = bottleneck ? 4 * width : width;
  nn::Sequential layer;
  for (int i = 0; i < blocks; ++i) {
    const std::int64_t step = i == 0 ? stride : 1;
    Shortcut shortcut;
    if (step != 1 || channels_ != out) shortcut = {convolution(channels_, out, 1, step), Norm(out)};
    layer->push_back(Block(channels_, width, step, bottleneck, shortcut));
    channels_ = out;
  }
  return layer;
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
  ResNet network(kind->stages, kind->bottleneck, classes);
  if (zero_init) zero_last_norms(*network, kind->bottleneck ? ".bn3.weight" : ".bn2.weight");
  return network;
}

}  // namespace sluice
