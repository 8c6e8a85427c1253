// One network trained by many ranks: gradients are averaged over them in buckets while backward still runs
// (torch's Reducer, as its DistributedDataParallel has it), weights come from rank 0, sums from all. All
// ranks call the same functions in the same order, on one thread each. Throws as torch does.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/ranks/ranks.hpp"
#include "model/ranks/reduce_trace.hpp"
#include "pch/torch.hpp"

namespace sluice {

class Parallel {
 public:
  // Gives each parameter a gradient, a part of its bucket's memory in the parameter's layout: zero it, never
  // replace it. `trace` may be null.
  Parallel(std::shared_ptr<Ranks> ranks, const std::vector<std::pair<std::string, at::Tensor>>& parameters,
           std::shared_ptr<ReduceTrace> trace);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  // Before a backward whose end completes the gradients. Without it they only add up on this rank.
  void expect_gradients();

  void from_first(const std::vector<at::Tensor>& tensors) const;  // rank 0's values on all
  void sum(at::Tensor& values) const;                             // over all ranks; the same bits on each

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
