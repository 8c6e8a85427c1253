// The ResNets as shapes: which convolutions follow each other, how many weights they hold. What the network
// is built from and what a plan is computed from, so that the two cannot drift apart. Free of torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice {

struct ResNetKind {
  const char* name;
  std::array<int, 4> stages;  // blocks of each
  bool bottleneck;            // blocks widen their output four times
};
// Null if there is no such network.
[[nodiscard]] const ResNetKind* resnet_kind(std::string_view arch);

// Square kernels and images. Each convolution has no bias and a norm behind it.
struct ConvShape {
  std::int64_t in, out, kernel, stride;
  [[nodiscard]] std::int64_t weights() const { return in * out * kernel * kernel; }
  [[nodiscard]] std::int64_t padding() const { return kernel / 2; }
  [[nodiscard]] std::int64_t side(std::int64_t of) const { return (of + stride - 1) / stride; }
};

struct BlockShape {
  std::vector<ConvShape> convs;
  std::optional<ConvShape> shortcut;  // where the input has another shape than the output
  [[nodiscard]] std::int64_t width() const { return convs.back().out; }
};

struct NetworkShape {
  ConvShape stem;             // then pooling to half the side
  std::array<int, 4> stages;  // how many blocks belong to each, one stage after the other
  std::vector<BlockShape> blocks;
  [[nodiscard]] std::int64_t features() const { return blocks.back().width(); }
  [[nodiscard]] std::int64_t parameters(std::int64_t classes) const;
  [[nodiscard]] std::int64_t norms() const;       // how many
  [[nodiscard]] std::int64_t statistics() const;  // running means and variances
};

[[nodiscard]] NetworkShape network_shape(const ResNetKind& kind);

}  // namespace sluice
