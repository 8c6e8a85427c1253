// Doctor's words on a sample of images of both splits.
#pragma once

#include "run/data/image_sample.hpp"
#include "run/launch/checklist.hpp"

namespace sluice {

struct ImageSamples {
  ImageSample train, val;
};

[[nodiscard]] ImageSamples sample_both(const DataSets& sets, const DataPathOptions& options);
void look_at_images(Checklist& list, const ImageSamples& samples, double max_bad);

}  // namespace sluice
