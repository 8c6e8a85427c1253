// Cross entropy and the counts of right answers for a batch, all left on the device: nothing here waits for
// it. A label of -1 marks an image that does not count.
#pragma once

#include "model/train/mix.hpp"
#include "pch/torch.hpp"

namespace sluice {

struct BatchSums {
  at::Tensor loss;      // summed over the images that count, float or double, differentiable
  at::Tensor count;     // how many count; at least 1 is never assumed
  at::Tensor judged;    // how many of them count for the accuracy: all, or none of a mixed batch
  at::Tensor correct1;  // the label scores highest
  at::Tensor correct5;  // the label is among the five highest (among all, where there are fewer classes)

  // What to differentiate: the mean over the images that count, 0 where none does.
  [[nodiscard]] at::Tensor mean() const;
};

// logits [n, classes] of any floating type, labels [n] int64. In a mixed batch each image answers for its own
// label and its partner's, by their weights.
[[nodiscard]] BatchSums cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                      double label_smoothing, const Mix& mix = {});

// How a batch is mixed, as scalars on the device: for a step that is recorded and replayed.
struct MixOnDevice {
  explicit MixOnDevice(at::Device device);
  void set(const Mix& mix);  // queued, like all other work
  at::Tensor own, other;     // float
  at::Tensor judged;         // int64: 1, or 0 for a mixed batch
};
[[nodiscard]] BatchSums cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                      double label_smoothing, const MixOnDevice& mix);

// Running sums of batches in one small tensor on the device, read back in one go.
class Running {
 public:
  explicit Running(at::Device device);
  void add(const BatchSums& batch);

  static constexpr std::int64_t width = 7;
  // loss, count, judged, correct1, correct5, batches, batches whose loss was not finite (the first five leave
  // those out).
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  void add(const Running& more) { values_.add_(more.values_); }
  void reset() { values_.zero_(); }

 private:
  at::Tensor values_;
};

}  // namespace sluice
