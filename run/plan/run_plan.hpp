// From a configuration and a machine to the numbers a run works with. The one place where cores are shared
// out between TBB, I/O and torch, and where `"auto"` is settled.
#pragma once

#include "graph/figures/layout.hpp"
#include "model/ranks/seat.hpp"
#include "nodes/data_path.hpp"
#include "nodes/source/folder.hpp"
#include "run/config/config.hpp"
#include "run/plan/machine.hpp"
#include "run/plan/memory.hpp"

namespace sluice {

struct RunPlan {
  PipelineOptions pipeline;  // first_batch and batches are for the caller to fill in
  DataPathOptions data;      // likewise first_batch
  unsigned torch_threads = 1;
  std::string budget_source;  // where budget.ram comes from, in words
  MemoryPlan memory;          // RAM of one rank's process, the data path included
  // All that the process needs: those above, and of uploads, steps, log, big lane, heartbeat and checkpoints.
  [[nodiscard]] unsigned threads() const {
    return pipeline.read_threads + pipeline.decode_threads + torch_threads + 8;
  }
};

// `index_bytes`: what the data sets' indexes hold. The machine's CPUs and memory, and budget.ram, are shared
// evenly by the ranks of this host; numbers of threads that the configuration gives are each rank's own.
// budget.ram = "auto" takes half of what is left of the memory beside memory_beside(), at most 4 GiB.
[[nodiscard]] Result<RunPlan> plan_run(const Config& config, const Machine& machine,
                                       const std::string& device, std::size_t index_bytes,
                                       unsigned local_ranks = 1, std::int64_t classes = 1000);

// The least that a rank's share of budget.ram must be for plan_run to take it.
[[nodiscard]] std::size_t least_ram(const Config& config, const Machine& machine, const std::string& device,
                                    std::size_t index_bytes, unsigned local_ranks = 1);

[[nodiscard]] FolderOptions folder_options(const Config& config);
// The folders of `data.train` and `data.val`, scanned.
[[nodiscard]] Result<DataSets> scan_data(const Config& config);
// `data.val` alone, in both places.
[[nodiscard]] Result<DataSets> scan_validation(const Config& config);

[[nodiscard]] RunShape run_shape(const Config& config, const DataSets& sets, const Seat& seat = {});

}  // namespace sluice
