// What differs between kinds of training, for those who never see a tensor: what a sample is in memory, how
// it is called, what a step holds, which figures come of its sums. Everybody else asks here instead of
// assuming images and classes. The side that works on tensors is model/train/tensor_task.hpp, found by
// `kind`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/sample_layout.hpp"
#include "base/values.hpp"
#include "model/network/activations.hpp"

namespace sluice {

struct PhaseSums;

struct Task {
  std::string kind;
  SampleLayout sample;  // the largest of the run
  std::string size;     // of a sample, for people: "224 px"
  // What a checkpoint's run must have in common with one that goes on from it.
  std::vector<std::pair<std::string, std::int64_t>> facts;
  // What a step holds beside weights, gradients and momenta. `step` is all but the size of the samples.
  StepMemory (*step_memory)(const SampleLayout& sample, StepShape step) = nullptr;
  // The figures of a phase by name, each begun by `prefix`. Those that cannot be told are left out.
  Values (*figures)(const std::string& prefix, const PhaseSums& sums) = nullptr;
};

// RGB images of size x size bytes in rows (NHWC), and a class number as an int32.
[[nodiscard]] constexpr SampleLayout image_layout(std::int64_t size) {
  return {{3, 1, size, size}, 1, sizeof(std::int32_t)};
}
constexpr std::int32_t no_class = -1;  // the label of an image that must not count

constexpr const char* image_classification_kind = "image classification";
[[nodiscard]] Task image_classification(std::int64_t image_size);

}  // namespace sluice
