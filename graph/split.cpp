#include "graph/split.hpp"

#include <algorithm>
#include <cstdio>

#include "graph/chunks.hpp"
#include "graph/sample.hpp"
#include "graph/slots.hpp"
#include "graph/text.hpp"

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
    char text[160];
    std::snprintf(text, sizeof text, "\n  %-12s %12s  %s", owner, readable_bytes(bytes).c_str(), how.c_str());
    return std::string(text);
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

Result<BudgetSplit> split_budget(const SplitRequest& r) {
  BudgetSplit s;
  s.budget = r.budget;
  s.index = r.index;
  s.scratch = r.decode_threads * r.thread_scratch;
  s.copies = r.decode_threads * round_to_pages(r.thread_copy);
  s.lane = round_to_pages(r.max_file) + r.max_scratch;
  s.slot_bytes = Slot::bytes_for(r.batch, r.place_bytes);
  s.grant_chunks = ChunkPool::chunks_for(r.grant);

  // The least that runs: the slots that were asked for (two if nothing was said), and read-ahead for as many
  // files as there are decode threads, and one more.
  const std::size_t ticket = Sample::bytes_with(s.grant_chunks);
  const std::size_t slot_tickets = r.batch * ticket;  // a slot lets so many more samples be on their way
  const std::size_t slot_cost = s.slot_bytes + slot_tickets;
  const unsigned wanted_slots = std::max(r.slots.value_or(least_slots), least_slots);
  const std::size_t least_chunks = (r.decode_threads + 1) * s.grant_chunks;
  const auto needed = [&](unsigned slots) {
    return s.index + s.scratch + s.copies + s.lane + slots * slot_cost +
           least_chunks * (ChunkPool::chunk_bytes + ticket);
  };
  if (needed(wanted_slots) > r.budget) {
    s.slots = wanted_slots;
    s.chunks = least_chunks;
    s.read_ahead = least_chunks;
    s.tickets = least_chunks * ticket + wanted_slots * slot_tickets;
    Error e{"budget", "budget.ram = " + readable_bytes(r.budget), "", ""};
    e.cause = "too small; these settings need at least " + readable_bytes(needed(wanted_slots)) + ":" +
              s.table() + "\n ";
    const std::size_t mib = 1024 * 1024;
    e.hint = "set budget.ram to \"" + std::to_string((needed(wanted_slots) + mib - 1) / mib) +
             "MiB\" or more" +
             (wanted_slots > least_slots && needed(least_slots) <= r.budget
                  ? ", or pipeline.prefetch to " + std::to_string((r.budget - needed(0)) / slot_cost)
                  : ", or lower train.batch, data.image_size, data.max_scratch or data.max_file");
    return e;
  }

  if (r.slots) {
    s.slots = wanted_slots;
  } else {
    const std::size_t spare = r.budget - needed(0);
    const std::size_t fit = std::max<std::size_t>(spare / slot_cost, least_slots);
    const std::size_t half = spare / 2 / slot_cost;  // the other half is for read-ahead
    const std::size_t cap = half > 4 * auto_slots_roomy ? auto_slots_roomy : auto_slots;
    s.slots = static_cast<unsigned>(std::clamp<std::size_t>(std::min(half, cap), least_slots, fit));
  }
  const std::size_t rest = r.budget - (s.index + s.scratch + s.copies + s.lane + s.slots * slot_cost);
  const std::size_t most_chunks = rest / (ChunkPool::chunk_bytes + ticket);
  s.read_ahead =
      std::min(r.read_ahead.value_or(auto_read_ahead), most_chunks);  // a file takes a chunk at least
  s.chunks = std::clamp(s.read_ahead * s.grant_chunks, least_chunks, most_chunks);
  s.tickets = s.read_ahead * ticket + s.slots * slot_tickets;
  return s;
}

}  // namespace sluice
