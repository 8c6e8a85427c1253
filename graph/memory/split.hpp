// How the RAM budget is divided at the start: index, what each decode thread works in, the big lane, batch
// slots and read-ahead. Refuses a budget that cannot hold the minimum, with the arithmetic and the smallest
// one that works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace sluice {

struct SplitRequest {
  std::size_t budget = 0;
  std::size_t index = 0;        // bytes the file index holds already
  std::uint32_t batch = 0;      // places of the largest batch
  std::size_t place_bytes = 0;  // of one decoded sample
  std::size_t label_bytes = sizeof(std::int32_t);
  unsigned decode_threads = 1;
  std::size_t thread_scratch = 0;  // codec memory allotted to each decode thread
  std::size_t thread_copy = 0;     // what augmentation works in, for each decode thread
  std::size_t max_file = 0, max_scratch = 0;
  std::size_t grant = 0;                  // read-ahead credit a ticket is admitted with
  std::optional<unsigned> slots;          // empty: as many as are useful
  std::optional<std::size_t> read_ahead;  // files; empty: as many as are useful
  unsigned sharers = 1;                   // ranks that share budget.ram: advice is about all of it
};

struct BudgetSplit {
  std::size_t budget = 0, index = 0, scratch = 0, copies = 0, lane = 0;
  std::size_t tickets = 0;  // the bookkeeping of all samples that can be on their way
  unsigned slots = 0;
  std::size_t slot_bytes = 0;  // of one slot
  std::size_t read_ahead = 0;  // files in flight at most
  std::size_t chunks = 0;      // read-ahead memory
  std::size_t grant_chunks = 0;

  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] std::string table() const;  // a line for each owner, for people
};

// The smallest budget that split_budget takes.
[[nodiscard]] std::size_t least_budget(const SplitRequest& request);

[[nodiscard]] Result<BudgetSplit> split_budget(const SplitRequest& request);

}  // namespace sluice
