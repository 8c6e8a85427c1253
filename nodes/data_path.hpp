// The data path over two sources of JPEGs: sampler, read, decode, big lane and augment as the graph's stages.
// Needs no torch. What a place of a batch holds depends on (seed, epoch, index) alone, never on threads or
// timing.
#pragma once

#include <memory>

#include "graph/flow/stages.hpp"
#include "nodes/augment.hpp"
#include "nodes/decode.hpp"
#include "nodes/sampler.hpp"
#include "nodes/source/source.hpp"

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
  std::shared_ptr<const Source> train, val;  // either may be missing where no ticket asks for it
  [[nodiscard]] const Source& of(Split split) const { return split == Split::train ? *train : *val; }
  [[nodiscard]] std::size_t index_bytes() const {
    return (train ? train->index_bytes() : 0) + (val && val != train ? val->index_bytes() : 0);
  }
};

// All but `upload`, `step` and what belongs to them.
[[nodiscard]] Stages data_path(std::shared_ptr<const DataSets> sets, const Sequence& sequence,
                               const DataPathOptions& options);

}  // namespace sluice
