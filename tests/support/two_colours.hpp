// A small network and two colours to tell apart: what tests of the training step feed it.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "model/train/train_step.hpp"

namespace sluice::test {

inline constexpr int batch = 8, size = 32;

inline StepOptions tiny() {
  StepOptions options;
  options.arch = "resnet18";
  options.classes = 2;
  options.batch = batch;
  options.task = image_classification(size);
  options.threads = 1;
  options.channels_last = true;
  options.momentum = 0.9;
  options.weight_decay = 1e-4;
  options.decay_all = true;
  options.seed = 42;
  return options;
}

// Noise with a reddish (class 0) or bluish (class 1) tint; the same for the same number.
struct Images {
  explicit Images(int number) : pixels(batch * size * size * 3), labels(batch) {
    Random random(1, 0, static_cast<std::uint64_t>(number), Purpose::synth);
    for (int i = 0; i < batch; ++i) {
      labels[i] = i % 2;
      for (int p = 0; p < size * size; ++p)
        for (int c = 0; c < 3; ++c)
          pixels[(i * size * size + p) * 3 + c] =
              static_cast<std::uint8_t>(random.below(160) + (c == 2 * labels[i] ? 80 : 0));
    }
  }
  DeviceBatch give(int count = batch) {
    return {pixels.data(), labels.data(), count, image_layout(size), [] {}, [this] { ++released; }};
  }
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  int released = 0;
};

inline double train_once(Step& step, int number, double rate = 0.02) {
  Images images(number);
  REQUIRE(step.train(images.give(), rate));
  CHECK(images.released == 1);
  const auto sums = step.read_back();
  REQUIRE(sums);
  REQUIRE(sums->finite);
  CHECK(sums->train.count == batch);
  return sums->train.loss / batch;
}

inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The values of one tensor of a step's snapshot.
inline std::vector<float> stored(Step& step, const std::string& name) {
  Snapshot snapshot;
  REQUIRE(step.snapshot(snapshot));
  const StoredTensor* tensor = snapshot.find(name);
  REQUIRE_MESSAGE(tensor != nullptr, name);
  const auto bytes = snapshot.bytes(*tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace sluice::test
