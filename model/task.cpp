#include "model/task.hpp"

#include "model/train/train_step.hpp"

namespace sluice {
namespace {

StepMemory image_step_memory(const SampleLayout& sample, StepShape step) {
  step.image_size = sample.width();
  return step_memory(step);
}

// loss, acc1, acc5. Where no image could be used, there is none of them: a loss of zero would be the best
// there is. Accuracy of images that were mixed with others means nothing: where no image was judged, it is
// left out.
Values class_figures(const std::string& prefix, const PhaseSums& s) {
  const auto mean = [](double sum, std::int64_t count) { return sum / static_cast<double>(count); };
  Values values;
  if (s.count > 0) values.emplace_back(prefix + "loss", mean(s.loss, s.count));
  if (s.judged > 0) {
    values.emplace_back(prefix + "acc1", 100 * mean(static_cast<double>(s.correct1), s.judged));
    values.emplace_back(prefix + "acc5", 100 * mean(static_cast<double>(s.correct5), s.judged));
  }
  return values;
}

}  // namespace

Task image_classification(std::int64_t image_size) {
  return {.kind = image_classification_kind,
          .sample = image_layout(image_size),
          .size = std::to_string(image_size) + " px",
          .facts = {{"image_size", image_size}},
          .step_memory = image_step_memory,
          .figures = class_figures};
}

}  // namespace sluice
