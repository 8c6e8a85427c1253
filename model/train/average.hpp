// An exponential moving average of a network's weights and statistics, kept as a network of its own that can
// be evaluated.
#pragma once

#include "model/network/network_module.hpp"

namespace sluice {

class Average {
 public:
  // `like` is built as `source` is; it becomes a copy of it.
  Average(NetworkPointer like, const NetworkModule& source, double decay);

  // After so many optimiser steps, this one included. Early on the average is shorter than `decay` makes it
  // ((1 + steps) / (10 + steps), as TensorFlow's ExponentialMovingAverage has it), so that the initial
  // weights do not stay in it for long.
  void update(std::uint64_t steps);
  void restart();  // a copy of the source again

  [[nodiscard]] const NetworkPointer& network() const { return network_; }

 private:
  NetworkPointer network_;
  double decay_;
  std::vector<at::Tensor> averaged_, source_;       // floating point
  std::vector<at::Tensor> counts_, source_counts_;  // whole numbers are copied
};

}  // namespace sluice
