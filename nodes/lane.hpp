// The big lane: what is too large for the ordinary path, and replacements for what cannot be used, one at a
// time in memory of its own. In training a bad image is replaced by the first good one of `candidates` drawn
// from the whole set by (seed, epoch, index), with its own label; in validation it is masked out. Each is
// noted on its batch.
#pragma once

#include <optional>

#include "graph/memory/mapping.hpp"
#include "nodes/data_path.hpp"

namespace sluice {

class Lane {
 public:
  static constexpr int candidates = 16;

  Lane(std::shared_ptr<const DataSets> sets, const DataPathOptions& options);
  // `trouble`: why the ticket's own image cannot be used; none: it was only too large.
  [[nodiscard]] Outcome settle(const Ticket& ticket, const std::optional<Error>& trouble, Slot& slot,
                               const Stop& stop);

 private:
  // Reads and decodes one image into the ticket's place.
  Outcome load(const Ticket& ticket, std::uint64_t index, Slot& slot, const Stop& stop);

  std::shared_ptr<const DataSets> sets_;
  DataPathOptions options_;
  Mapping file_;
  JpegDecoder decoder_;
};

}  // namespace sluice
