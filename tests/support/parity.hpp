// The training of tests/interop/formula.py with the program's own step: weights, images and labels from a
// formula on integers, exact in fp32, so that Python and C++ start from the same bits without a file.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model/train/train_step.hpp"

namespace sluice::test {

namespace parity {
constexpr int classes = 1000, batch = 8, size = 64, cell = 16, salt = 40, steps = 3;
constexpr double rate = 0.002, momentum = 0.9, decay = 2e-5, smoothing = 0.1, shift = 3;
}  // namespace parity

class Bits {
 public:
  explicit Bits(std::string_view name) {
    for (const char c : name) seed_ = (seed_ ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  std::uint32_t operator()(std::size_t i) const {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9E3779B9u + seed_;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
  }

 private:
  std::uint32_t seed_ = 2166136261u;
};

// The weight or running statistic of this name in torchvision's state_dict, as offset + scale * u with u
// between -1 and 1, and the offset's sign turned in two of four places of a norm's bias.
struct Formula {
  Formula(const std::string& arch, const std::string& name, const std::vector<std::int64_t>& shape)
      : bits(name) {
    const bool deep = arch == "resnet50" || arch == "resnet101";
    const double part = name.find(deep ? ".bn3." : ".bn2.") != name.npos ? 0.25 : 1;
    std::uint64_t fan = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) fan *= static_cast<std::uint64_t>(shape[i]);
    if (name.ends_with("running_mean"))
      scale = 1.0 / 8;
    else if (name.ends_with("running_var"))
      offset = 1, scale = 1.0 / 4;
    else if (shape.size() > 1) {
      scale = std::ldexp(1.0, -(std::bit_width(fan) / 2));
      if (shape[1] > 3) pair = fan / static_cast<std::uint64_t>(shape[1]);
    } else if (name == "fc.bias")
      scale = 1.0 / 16;
    else if (name.ends_with("weight"))
      offset = part, scale = part / 4;
    else
      offset = part * parity::shift, scale = part / 8, alternate = true;
  }
  float operator()(std::size_t i) const {
    const bool second = pair > 0 && i / pair % 2 == 1;
    const double u = (2.0 * (bits(second ? i - pair : i) >> 16) - 65535) / 65536;
    return static_cast<float>((alternate && i % 4 > 1 ? -offset : offset) + (second ? -scale : scale) * u);
  }

  Bits bits;
  double offset = 0, scale = 0;
  bool alternate = false;
  std::size_t pair = 0;  // values from one channel to the next, where neighbours have opposite weights
};

// Large squares that differ between images, with a little noise.
struct FormulaBatch {
  explicit FormulaBatch(int step)
      : pixels(std::size_t{parity::batch} * parity::size * parity::size * 3), labels(parity::batch) {
    const std::string number = std::to_string(parity::salt + step);
    const Bits squares("squares" + number), noise("noise" + number), label("labels");
    constexpr std::size_t size = parity::size, cells = size / parity::cell;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t c = i % 3, x = i / 3 % size, y = i / 3 / size % size, n = i / 3 / size / size;
      const std::size_t square = ((n * cells + y / parity::cell) * cells + x / parity::cell) * 3 + c;
      pixels[i] = static_cast<std::uint8_t>(((squares(square) >> 24) * 7 + (noise(i) >> 24)) / 8);
    }
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(label(i) % parity::classes);
  }
  [[nodiscard]] DeviceBatch give() const {
    return {pixels.data(), labels.data(), parity::batch, image_layout(parity::size), [] {}, [] {}};
  }
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

inline Result<Step> formula_step(const std::string& arch, bool nesterov) {
  StepOptions options;
  options.arch = arch;
  options.classes = parity::classes;
  options.label_smoothing = parity::smoothing;
  options.momentum = parity::momentum;
  options.weight_decay = parity::decay;
  options.decay_all = true;
  options.nesterov = nesterov;
  options.channels_last = true;
  options.threads = 1;  // others run at the same time, and two threads would wait for each other
  options.batch = parity::batch;
  options.task = image_classification(parity::size);
  Result<Step> step = Step::create(options);
  if (!step) return step;
  Snapshot snapshot;
  if (Status done = step->snapshot(snapshot); !done) return done.error();
  for (const StoredTensor& tensor : snapshot.tensors) {
    if (!tensor.name.starts_with("model.") || tensor.shape.empty()) continue;
    const Formula formula(arch, tensor.name.substr(6), tensor.shape);
    for (std::size_t i = 0; i < tensor.bytes / sizeof(float); ++i) {
      const float value = formula(i);
      std::memcpy(snapshot.data.data() + tensor.offset + i * sizeof value, &value, sizeof value);
    }
  }
  if (Status done = step->restore(snapshot); !done) return done.error();
  return step;
}

// The mean loss of the step.
inline Result<double> formula_train(Step& step, int number) {
  const FormulaBatch batch(number);
  if (Status done = step.train(batch.give(), parity::rate); !done) return done.error();
  const Result<StepSums> sums = step.read_back();
  if (!sums) return sums.error();
  return sums->train.loss / static_cast<double>(sums->train.count);
}

}  // namespace sluice::test
