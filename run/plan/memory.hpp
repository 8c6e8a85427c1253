// Who will hold how much memory in a run, computed before it starts: the one computation behind `sluice
// plan`, budget.ram = "auto" and the watch over a run's memory. Pure arithmetic; docs/planning.md explains
// each owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/memory/split.hpp"
#include "run/config/config.hpp"

namespace sluice {

struct Owner {
  std::string key;   // for programs
  std::string name;  // for people
  std::size_t bytes = 0;
  std::string how;  // where the figure comes from
};

struct MemoryPlan {
  std::vector<Owner> owners;
  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] std::size_t of(std::string_view key) const;  // 0 if it has no such owner
};

// What a run computes with, as far as memory depends on it.
struct NetworkRun {
  std::string device;  // "cpu" or "cuda"
  std::int64_t classes = 1000;
  unsigned ranks = 1;    // of all hosts
  unsigned threads = 0;  // of one process, that compute
  unsigned readers = 0;  // and that read, at most
};

// RAM of one process beside its data path; of the one that writes checkpoints, if there are several.
[[nodiscard]] MemoryPlan memory_beside(const Config& config, const NetworkRun& run);
// The data path's owners, as budget.ram is divided among them.
[[nodiscard]] std::vector<Owner> data_path_owners(const BudgetSplit& split);
// Of one GPU; nobody on the CPU.
[[nodiscard]] MemoryPlan device_memory(const Config& config, const NetworkRun& run);

// One checkpoint's file, or its copy in memory: weights, momenta and averages.
[[nodiscard]] std::size_t checkpoint_bytes(const Config& config, std::int64_t classes);
// How many of them are on disk at once at most: the best, `last`, the one before it, and one being written.
[[nodiscard]] std::size_t checkpoint_files(const Config& config);

// The batches that a loader of `workers` processes with FP32 batches would hold for the same settings.
struct LoaderMemory {
  std::size_t workers = 0, prefetch = 0;  // batches ahead, for each worker
  std::size_t batch_bytes = 0;
  [[nodiscard]] std::size_t total() const { return workers * prefetch * batch_bytes; }
};
[[nodiscard]] LoaderMemory loader_memory(const Config& config, unsigned decode_threads);

}  // namespace sluice
