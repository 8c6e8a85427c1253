// What one sample is in memory, in a batch slot as on the device: its values, and its label. What they mean
// is the task's affair (model/task.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

struct SampleLayout {
  std::array<std::int64_t, 4> shape{};             // channels, depth, height, width; an image has depth 1
  std::size_t value_bytes = 1;                     // of one value
  std::size_t label_bytes = sizeof(std::int32_t);  // of the whole label

  [[nodiscard]] constexpr std::size_t values() const {
    return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
  }
  [[nodiscard]] constexpr std::size_t bytes() const { return values() * value_bytes; }
  [[nodiscard]] constexpr int width() const { return static_cast<int>(shape[3]); }
  [[nodiscard]] std::string text() const {  // "3 x 224 x 224"
    std::string all = std::to_string(shape[0]);
    for (std::size_t i = shape[1] == 1 ? 2 : 1; i < shape.size(); ++i)
      all += " x " + std::to_string(shape[i]);
    return all;
  }
};

}  // namespace sluice
