// Mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019) of a batch: which of the two, and how much. The
// images of places 0 and 1, 2 and 3, ... are partners. Chosen by (seed, number of the batch) alone, so that
// all ranks and a resumed run agree. Free of torch; model/train/convert.hpp does it to the pixels.
#pragma once

#include <cstdint>

#include "base/box.hpp"
#include "base/random.hpp"

namespace sluice {

struct MixOptions {
  double mixup = 0;      // alpha of the Beta distribution; 0: off
  double cutmix = 0;     // likewise
  double share = 0;      // of the batches that are mixed
  double to_cutmix = 0;  // of the mixed batches, where both are on
};

struct Mix {
  enum class Kind : std::uint8_t { none, mixup, cutmix };
  Kind kind = Kind::none;
  float own = 1, other = 0;  // weights of an image's own label and of its partner's
  Box box{};                 // cutmix: the part that comes from the partner
};

// A draw from Beta(alpha, alpha), alpha > 0.
[[nodiscard]] double symmetric_beta(Random& random, double alpha);

// The part of a size x size image that cutmix takes from the partner, cut off at the edges.
[[nodiscard]] Box cutmix_box(double lambda, int size, Random& random);

// `batch` counts training batches over the whole run.
[[nodiscard]] Mix choose_mix(const MixOptions& options, std::uint64_t seed, std::uint64_t batch, int size);

}  // namespace sluice
