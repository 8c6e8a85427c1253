// The data path over two image folders: sampler, read, decode, big lane and augment as the graph's stages.
// Needs no torch. What a place of a batch holds depends on (seed, epoch, index) alone, never on threads or
// timing.
#pragma once

#include <memory>

#include "graph/flow/stages.hpp"
#include "nodes/augment.hpp"
#include "nodes/decode.hpp"
#include "nodes/read.hpp"
#include "nodes/sampler.hpp"
#include "nodes/source/folder.hpp"

namespace sluice {

struct DataPathOptions {
  DecodeOptions decode;
  AugmentOptions augment;
  ReadOptions read;
  unsigned decode_threads = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_batch = 0;
};

struct DataSets {
  ImageFolder train, val;
  [[nodiscard]] const ImageFolder& of(Split split) const { return split == Split::train ? train : val; }
};

// All but `upload`, `step` and what belongs to them.
[[nodiscard]] Stages data_path(std::shared_ptr<const DataSets> sets, const Sequence& sequence,
                               const DataPathOptions& options);

}  // namespace sluice
