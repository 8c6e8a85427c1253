// Doctor's words on a sample of images of both splits.
#pragma once

#include "cli/checklist.hpp"
#include "cli/image_sample.hpp"

namespace sluice {

struct ImageSamples {
  ImageSample train, val;
};

[[nodiscard]] ImageSamples sample_both(const DataSets& sets, const DataPathOptions& options);
void look_at_images(Checklist& list, const ImageSamples& samples, double max_bad);

}  // namespace sluice
