#include "graph/memory/split.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "graph/memory/chunks.hpp"
#include "graph/memory/sample.hpp"
#include "graph/memory/slots.hpp"

namespace sluice {
namespace {

// With nothing said: three slots hide a consumer's jitter; more only if the budget has plenty to spare.
constexpr unsigned auto_slots = 3, auto_slots_roomy = 6;
// Read-ahead beyond this hides no latency that 512 files in flight do not.
constexpr std::size_t auto_read_ahead = 512;
constexpr unsigned least_slots = 2;

}  // namespace

std::size_t BudgetSplit::total() const {
  return index + scratch + copies + lane + tickets + slots * slot_bytes + chunks * ChunkPool::chunk_bytes;
}

std::string BudgetSplit::table() const {
  const auto line = [](const char* owner, std::size_t bytes, const std::string& how) {
    return fmt::format("\n  {:<12} {:>12}  {}", owner, readable_bytes(bytes), how);
  };
  return line("index", index, "names of all files") +
         line("scratch", scratch, "codec memory of the decode threads") +
         (copies > 0 ? line("augment", copies, "a copy of one image for each decode thread") : "") +
         line("tickets", tickets, "bookkeeping of the samples on their way") +
         line("big lane", lane, "data.max_file + data.max_scratch, one at a time") +
         line("batch slots", slots * slot_bytes, std::to_string(slots) + " x " + readable_bytes(slot_bytes)) +
         line("read-ahead", chunks * ChunkPool::chunk_bytes,
              "at most " + std::to_string(read_ahead) + " files, each admitted with " +
                  readable_bytes(grant_chunks * ChunkPool::chunk_bytes)) +
         line("total", total(), "of budget.ram = " + readable_bytes(budget));
}

namespace {

// The parts that do not depend on the budget.
BudgetSplit fixed_parts(const SplitRequest& r) {
  BudgetSplit s;
  s.budget = r.budget;
  s.index = r.index;
  s.scratch = r.decode_threads * r.thread_scratch;
  s.copies = r.decode_threads * round_to_pages(r.thread_copy);
  s.lane = round_to_pages(r.max_file) + r.max_scratch;
  s.slot_bytes = Slot::bytes_for(r.batch, r.place_bytes, r.label_bytes);
  s.grant_chunks = ChunkPool::chunks_for(r.grant);
  return s;
}

// What runs with so many slots and the least read-ahead.
struct Least {
  explicit Least(const SplitRequest& r) : s(fixed_parts(r)) {
    ticket = Sample::bytes_with(s.grant_chunks);
    slot_tickets = r.batch * ticket;
    slot_cost = s.slot_bytes + slot_tickets;
    slots = std::max(r.slots.value_or(least_slots), least_slots);
    chunks = (r.decode_threads + 1) * s.grant_chunks;
  }
  [[nodiscard]] std::size_t with(std::size_t count) const {
    return s.index + s.scratch + s.copies + s.lane + count * slot_cost +
           chunks * (ChunkPool::chunk_bytes + ticket);
  }

  BudgetSplit s;
  std::size_t ticket = 0, slot_tickets = 0;  // a slot lets so many more samples be on their way
  std::size_t slot_cost = 0;
  unsigned slots = 0;      // those that were asked for, two if nothing was said
  std::size_t chunks = 0;  // for as many files as there are decode threads, and one more
};

}  // namespace

std::size_t least_budget(const SplitRequest& r) {
  const Least least(r);
  return least.with(least.slots);
}

Result<BudgetSplit> split_budget(const SplitRequest& r) {
  const Least least(r);
  BudgetSplit s = least.s;
  const std::size_t needed = least.with(least.slots);
  if (needed > r.budget) {
    s.slots = least.slots;
    s.chunks = least.chunks;
    s.read_ahead = least.chunks;
    s.tickets = least.chunks * least.ticket + least.slots * least.slot_tickets;
    Error e{"budget", "budget.ram = " + readable_bytes(r.budget), "", ""};
    e.cause = "too small; these settings need at least " + readable_bytes(needed) + ":" + s.table() + "\n ";
    const std::size_t mib = 1024 * 1024;
    e.hint =
        "set budget.ram to \"" + std::to_string((r.sharers * needed + mib - 1) / mib) + "MiB\" or more" +
        (least.slots > least_slots && least.with(least_slots) <= r.budget
             ? ", or pipeline.prefetch to " + std::to_string((r.budget - least.with(0)) / least.slot_cost)
             : ", or lower train.batch, data.image_size, data.max_scratch or data.max_file");
    return e;
  }

  if (r.slots) {
    s.slots = least.slots;
  } else {
    const std::size_t spare = r.budget - least.with(0);
    const std::size_t fit = std::max<std::size_t>(spare / least.slot_cost, least_slots);
    const std::size_t half = spare / 2 / least.slot_cost;  // the other half is for read-ahead
    const std::size_t cap = half > 4 * auto_slots_roomy ? auto_slots_roomy : auto_slots;
    s.slots = static_cast<unsigned>(std::clamp<std::size_t>(std::min(half, cap), least_slots, fit));
  }
  const std::size_t rest = r.budget - (s.index + s.scratch + s.copies + s.lane + s.slots * least.slot_cost);
  const std::size_t most_chunks = rest / (ChunkPool::chunk_bytes + least.ticket);
  s.read_ahead =
      std::min(r.read_ahead.value_or(auto_read_ahead), most_chunks);  // a file takes a chunk at least
  s.chunks = std::clamp(s.read_ahead * s.grant_chunks, least.chunks, most_chunks);
  s.tickets = s.read_ahead * least.ticket + s.slots * least.slot_tickets;
  return s;
}

}  // namespace sluice
