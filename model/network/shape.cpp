#include "model/network/shape.hpp"

namespace sluice {
namespace {

constexpr ResNetKind kinds[] = {{"resnet18", {2, 2, 2, 2}, false},
                                {"resnet34", {3, 4, 6, 3}, false},
                                {"resnet50", {3, 4, 6, 3}, true},
                                {"resnet101", {3, 4, 23, 3}, true}};

BlockShape block_shape(std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck) {
  BlockShape block;
  if (bottleneck)
    block.convs = {{in, width, 1, 1}, {width, width, 3, stride}, {width, 4 * width, 1, 1}};
  else
    block.convs = {{in, width, 3, stride}, {width, width, 3, 1}};
  if (stride != 1 || in != block.width()) block.shortcut = ConvShape{in, block.width(), 1, stride};
  return block;
}

template <class See>
void each_conv(const NetworkShape& network, const See& see) {
  see(network.stem);
  for (const BlockShape& block : network.blocks) {
    for (const ConvShape& conv : block.convs) see(conv);
    if (block.shortcut) see(*block.shortcut);
  }
}

}  // namespace

const ResNetKind* resnet_kind(std::string_view arch) {
  for (const ResNetKind& kind : kinds)
    if (arch == kind.name) return &kind;
  return nullptr;
}

NetworkShape network_shape(const ResNetKind& kind) {
  NetworkShape network{{3, 64, 7, 2}, kind.stages, {}};
  std::int64_t channels = network.stem.out;
  for (std::size_t stage = 0; stage < kind.stages.size(); ++stage)
    for (int i = 0; i < kind.stages[stage]; ++i) {
      network.blocks.push_back(
          block_shape(channels, 64 << stage, stage > 0 && i == 0 ? 2 : 1, kind.bottleneck));
      channels = network.features();
    }
  return network;
}

std::int64_t NetworkShape::parameters(std::int64_t classes) const {
  std::int64_t count = (features() + 1) * classes;
  each_conv(*this, [&](const ConvShape& conv) { count += conv.weights() + 2 * conv.out; });
  return count;
}

std::int64_t NetworkShape::norms() const {
  std::int64_t count = 0;
  each_conv(*this, [&](const ConvShape&) { ++count; });
  return count;
}

std::int64_t NetworkShape::statistics() const {
  std::int64_t count = 0;
  each_conv(*this, [&](const ConvShape& conv) { count += 2 * conv.out; });
  return count;
}

}  // namespace sluice
