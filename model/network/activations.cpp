#include "model/network/activations.hpp"

#include <algorithm>

#include "model/network/gemm_choice.hpp"
#include "model/network/shape.hpp"

namespace sluice {
namespace {

using Bytes = std::int64_t;

class Tape {
 public:
  void take(Bytes bytes) { peak_ = std::max(peak_, held_ += bytes); }
  void drop(Bytes bytes) { held_ -= bytes; }
  void briefly(Bytes bytes) { peak_ = std::max(peak_, held_ + bytes); }
  [[nodiscard]] Bytes held() const { return held_; }
  [[nodiscard]] Bytes peak() const { return peak_; }

 private:
  Bytes held_ = 0, peak_ = 0;
};

Bytes value_size(const std::string& precision) {
  if (precision == "fp64") return 8;
  return precision == "fp16" || precision == "bf16" ? 2 : 4;
}

// One step of one network. `side` is always that of the images a layer gets.
class Walk {
 public:
  Walk(const StepShape& shape, NetworkShape network)
      : s_(shape), network_(std::move(network)), value_(value_size(shape.precision)) {}

  StepMemory run() {
    const Bytes images = image_copy();
    const Bytes scores = s_.batch * s_.classes * 4 * 3;  // logits, their logarithms, and one of them more
    tape_.take(images);
    forward();
    tape_.take(scores);
    const Bytes kept = tape_.held();
    backward(scores);
    return {static_cast<std::size_t>(kept), static_cast<std::size_t>(tape_.peak()), 0};
  }

  // Forward alone: nothing is kept for a backward pass, and a block's input goes with its block.
  std::size_t validate() {
    tape_.take(image_copy());
    stem(false);
    std::int64_t side = pooled();
    for (const BlockShape& block : network_.blocks) {
      forward(block, side, false);
      tape_.drop(tensor(block.convs[0].in, side));
      for (const ConvShape& conv : block.convs) side = conv.side(side);
    }
    tape_.briefly(s_.batch * s_.classes * 4 * 3);
    return static_cast<std::size_t>(tape_.peak());
  }

 private:
  [[nodiscard]] Bytes tensor(std::int64_t channels, std::int64_t side) const {
    return s_.batch * channels * side * side * value_;
  }
  [[nodiscard]] bool cast() const { return value_ == 2; }
  [[nodiscard]] Bytes weight(const ConvShape& conv) const { return conv.weights() * value_; }

  // The converted batch is the input's own; another type or layout makes a copy.
  [[nodiscard]] Bytes image_copy() const {
    Bytes copies = s_.channels_last ? 0 : 1;
    if (s_.precision == "fp64" || (s_.cpu && cast() && !s_.recompute)) ++copies;
    return copies * tensor(network_.stem.in, s_.image_size);
  }

  // 3x3 convolutions that model/network/gemm_conv.hpp does as a product keep the matrix of their windows.
  [[nodiscard]] bool product(const ConvShape& conv, std::int64_t side) const {
    return gemm_is_faster(conv, side * side,
                          {.cpu = s_.cpu, .single = value_ == 4, .channels_last = s_.channels_last});
  }
  [[nodiscard]] Bytes windows(const ConvShape& conv, std::int64_t side) const {
    return product(conv, side) ? 9 * tensor(conv.in, side) : 0;
  }

  // Takes the output and what is kept beside it.
  void convolve(const ConvShape& conv, std::int64_t side, bool keep) {
    const Bytes window = windows(conv, side), cast_weight = cast() ? weight(conv) : 0;
    tape_.take(tensor(conv.out, conv.side(side)) + window + cast_weight);
    if (window > 0) tape_.briefly(tensor(conv.in, side + 2));
    if (!keep) tape_.drop(window);  // casts of weights stay until the forward pass is over
  }

  // Forward through a block whose input is there. Leaves its output, and unless `keep` nothing else.
  void forward(const BlockShape& block, std::int64_t side, bool keep) {
    const std::int64_t in = side;
    Bytes shortcut = 0, before = 0;
    for (std::size_t i = 0; i < block.convs.size(); ++i) {
      const ConvShape& conv = block.convs[i];
      if (i + 1 == block.convs.size() && block.shortcut) {
        shortcut = tensor(block.width(), block.shortcut->side(in));
        convolve(*block.shortcut, in, keep);
        tape_.take(shortcut);
        if (!keep) tape_.drop(shortcut);
      }
      convolve(conv, side, keep);
      side = conv.side(side);
      const Bytes out = tensor(conv.out, side);
      tape_.take(out);
      if (!keep) tape_.drop(out + before);  // of the convolution, and what it was given
      before = out;
    }
    tape_.drop(shortcut);
  }

  void stem(bool keep) {
    const std::int64_t side = network_.stem.side(s_.image_size);
    const Bytes out = tensor(network_.stem.out, side);
    convolve(network_.stem, s_.image_size, keep);
    tape_.take(out);
    const Bytes indices = s_.batch * network_.stem.out * pooled() * pooled() * 8;
    tape_.take(tensor(network_.stem.out, pooled()) + indices);
    if (!keep) tape_.drop(2 * out + indices);  // one expression: both live until the pooling is done
  }
  [[nodiscard]] std::int64_t pooled() const { return (network_.stem.side(s_.image_size) + 1) / 2; }

  void forward() {
    stem(!s_.recompute);
    std::int64_t side = pooled();
    for (const BlockShape& block : network_.blocks) {
      sides_.push_back(side);
      forward(block, side, !s_.recompute);
      for (const ConvShape& conv : block.convs) side = conv.side(side);
    }
    if (cast() && s_.recompute) drop_casts();
  }

  void drop_casts() {
    Bytes all = weight(network_.stem);
    for (const BlockShape& block : network_.blocks) all += casts(block);
    tape_.drop(all);
  }
  [[nodiscard]] Bytes casts(const BlockShape& block) const {
    Bytes sum = block.shortcut ? weight(*block.shortcut) : 0;
    for (const ConvShape& conv : block.convs) sum += weight(conv);
    return sum;
  }

  // Of the library, as measured: the weight in another layout, and partial sums.
  [[nodiscard]] Bytes scratch(const ConvShape& conv) const {
    if (!s_.cpu || cast()) return 0;
    return (value_ == 4 && s_.channels_last ? 2 : 1) * weight(conv);
  }

  // The gradient of the output is there and goes; that of the input comes. The weight's gradient is added to
  // its sum and goes; under autocast it is there in both types for a moment.
  void convolve_back(const ConvShape& conv, std::int64_t side, bool to_input) {
    const Bytes given = to_input ? tensor(conv.in, side) : 0, window = windows(conv, side);
    const Bytes sum = conv.weights() * (cast() ? 4 : value_), own = cast() ? sum + weight(conv) : sum;
    const Bytes folding = 4 * tensor(conv.in, side + 2);  // from windows to padded images, in two steps
    if (window > 0) tape_.briefly(own + window);
    tape_.take(given);
    tape_.briefly(window > 0 ? folding : own + scratch(conv));
    if (s_.recompute) {  // a part's gradients come out of it together
      tape_.take(sum);
      gathered_ += sum;
    }
    tape_.drop(tensor(conv.out, conv.side(side)) + window + (cast() ? weight(conv) : 0));
  }

  // The gradient of the block's output is there.
  void backward(const BlockShape& block, std::int64_t in, bool first) {
    std::vector<std::int64_t> sides{in};
    for (const ConvShape& conv : block.convs) sides.push_back(conv.side(sides.back()));
    const Bytes out = tensor(block.width(), sides.back()), input = tensor(block.convs[0].in, in);
    tape_.take(2 * out);  // what the relu lets through, and the gradient before the norm
    tape_.drop(3 * out);  // the gradient that came, the output, what the convolution gave
    const std::size_t last = block.convs.size() - 1;
    const auto conv_back = [&](std::size_t i) {
      convolve_back(block.convs[i], sides[i], true);
      if (i > 0) tape_.drop(tensor(block.convs[i].in, sides[i]));  // its input
    };
    conv_back(last);
    if (block.shortcut) {
      tape_.take(out);
      tape_.drop(2 * out);
      convolve_back(*block.shortcut, in, true);
    }
    for (std::size_t i = last; i-- > 0;) {
      const Bytes own = tensor(block.convs[i].out, sides[i + 1]);
      tape_.take(own);
      tape_.drop(2 * own);
      conv_back(i);
    }
    tape_.drop(input + gathered_);  // two gradients of the input become one
    gathered_ = 0;
    if (first) tape_.drop(input);
  }

  void backward(Bytes scores) {
    tape_.take(tensor(network_.features(), 1));
    std::int64_t end = sides_.back();
    for (const ConvShape& conv : network_.blocks.back().convs) end = conv.side(end);
    tape_.take(tensor(network_.features(), end));
    tape_.drop(scores);
    for (std::size_t i = network_.blocks.size(); i-- > 0;) {
      const BlockShape& block = network_.blocks[i];
      if (s_.recompute) {
        // The output is there a second time; the first was given up with the block behind.
        std::int64_t side = sides_[i];
        for (const ConvShape& conv : block.convs) side = conv.side(side);
        tape_.drop(tensor(block.width(), side));
        forward(block, sides_[i], true);
      }
      backward(block, sides_[i], i == 0);
    }
    if (s_.recompute) stem(true);
    const Bytes out = tensor(network_.stem.out, network_.stem.side(s_.image_size));
    tape_.take(out);  // through the pooling
    tape_.drop(tensor(network_.stem.out, pooled()) + s_.batch * network_.stem.out * pooled() * pooled() * 8);
    tape_.take(out);  // through the norm
    tape_.drop(3 * out);
    convolve_back(network_.stem, s_.image_size, false);
  }

  const StepShape& s_;
  const NetworkShape network_;
  const Bytes value_;
  Tape tape_;
  std::vector<std::int64_t> sides_;  // of each block's input
  Bytes gathered_ = 0;               // gradients of weights that wait for the rest of their block
};

}  // namespace

StepMemory step_memory(const StepShape& shape) {
  const ResNetKind* kind = resnet_kind(shape.arch);
  if (!kind) return {};
  StepMemory memory = Walk(shape, network_shape(*kind)).run();
  memory.validation = Walk(shape, network_shape(*kind)).validate();
  return memory;
}

NetworkBytes network_bytes(const std::string& arch, std::int64_t classes, const std::string& precision) {
  const ResNetKind* kind = resnet_kind(arch);
  if (!kind) return {};
  const NetworkShape network = network_shape(*kind);
  const std::int64_t stored = precision == "fp64" ? 8 : 4;
  return {static_cast<std::size_t>(network.parameters(classes) * stored),
          static_cast<std::size_t>(network.statistics() * stored + network.norms() * 8)};
}

}  // namespace sluice
