#include "run/plan/memory.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "graph/memory/chunks.hpp"
#include "model/network/activations.hpp"
#include "model/train/capture.hpp"
#include "run/config/step_options.hpp"

namespace sluice {
namespace {

constexpr std::size_t MiB = 1024 * 1024;

// Figures that no arithmetic gives. Those of the CPU build are measured (docs/planning.md says how); those
// of a GPU are not: none was at hand.
constexpr std::size_t cpu_process = 256 * MiB;    // libraries, arenas, oneDNN's compiled kernels
constexpr std::size_t cuda_process = 2560 * MiB;  // the same with CUDA's libraries and the driver's mappings
constexpr std::size_t thread_memory = 2 * MiB;    // stack and arena of one that computes
constexpr std::size_t reader_memory = MiB / 4;    // of one that reads
constexpr std::size_t cuda_context = 600 * MiB;   // on the GPU: context and kernels
constexpr std::size_t cudnn_workspace = 512 * MiB, nccl_buffers = 256 * MiB;
constexpr int device_slots = 3;  // of the ring between host and GPU

std::size_t of_batch(const Config& c, std::size_t of_sample) {
  return static_cast<std::size_t>(c.train.batch) * of_sample;
}

std::size_t converted_value(const Config& c, bool cpu) {
  return !cpu && (c.model.precision == "fp16" || c.model.precision == "bf16") ? 2 : 4;
}

StepMemory activations(const Config& c, const NetworkRun& run) {
  const Task task = task_of(c);
  return task.step_memory(task.sample, {c.model.arch, run.classes, 0, c.train.batch, c.model.precision,
                                        run.device == "cpu", c.model.channels_last, c.model.recompute});
}

std::string told_batch(const Config& c) {
  return "batch of " + std::to_string(c.train.batch) + " at " + task_of(c).size + ", " + c.model.precision +
         (c.model.recompute ? ", recomputed" : "");
}

// Weights and statistics, gradients, momenta; the statistics a second time, as of the last finished step.
struct Holdings {
  std::size_t weights, gradients, momenta, average;
  [[nodiscard]] std::size_t trained() const { return weights + gradients + momenta; }
};
Holdings holdings(const Config& c, std::int64_t classes) {
  const NetworkBytes n = network_bytes(c.model.arch, classes, c.model.precision);
  return {n.parameters + 2 * n.buffers, n.parameters, c.optim.momentum > 0 ? n.parameters : 0,
          c.optim.ema > 0 ? n.parameters + n.buffers : 0};
}

}  // namespace

std::size_t MemoryPlan::total() const {
  std::size_t sum = 0;
  for (const Owner& owner : owners) sum += owner.bytes;
  return sum;
}

std::size_t MemoryPlan::of(std::string_view key) const {
  const auto found = std::ranges::find(owners, key, &Owner::key);
  return found == owners.end() ? 0 : found->bytes;
}

std::size_t checkpoint_bytes(const Config& c, std::int64_t classes) {
  const NetworkBytes n = network_bytes(c.model.arch, classes, c.model.precision);
  return n.parameters + n.buffers + (c.optim.momentum > 0 ? n.parameters : 0) +
         (c.optim.ema > 0 ? n.parameters + n.buffers : 0);
}

std::size_t checkpoint_files(const Config& c) { return static_cast<std::size_t>(c.checkpoint.keep) + 3; }

MemoryPlan memory_beside(const Config& c, const NetworkRun& run) {
  const Holdings h = holdings(c, run.classes);
  const bool cpu = run.device == "cpu";
  MemoryPlan plan;
  const auto add = [&](const char* key, const char* name, std::size_t bytes, std::string how) {
    if (bytes > 0) plan.owners.push_back({key, name, bytes, std::move(how)});
  };
  const std::size_t libraries = cpu ? cpu_process : cuda_process;
  std::string how = readable_bytes(libraries) + (cpu ? ", measured" : ", an estimate, not measured");
  if (run.threads > 0)
    how += "; " + std::to_string(run.threads) + " threads of " + readable_bytes(thread_memory) + ", up to " +
           std::to_string(run.readers) + " that read of " + readable_bytes(reader_memory);
  add("process", "process and libtorch",
      libraries + run.threads * thread_memory + run.readers * reader_memory, how);
  if (cpu) {
    const std::size_t staging = of_batch(c, task_of(c).sample.values()) * converted_value(c, true);
    const std::size_t step = activations(c, run).peak;
    add("weights", "weights and optimiser", h.trained(), "weights, gradients, momenta");
    add("ema", "averaged weights", h.average, "optim.ema");
    add("activations", "activations", step, told_batch(c) + "; forward and backward at their fullest");
    add("staging", "device staging", staging, "the batch converted for the network");
    add("kept", "kept between steps", (h.trained() + h.average + step + staging) / 8,
        "freed tensors that stay, at most an eighth");
  } else {
    add("weights", "weights, for a moment", h.weights, "made on the host, then moved to the GPU");
  }
  add("checkpoint", "checkpoint copy", checkpoint_bytes(c, run.classes), "written while training goes on");
  return plan;
}

std::vector<Owner> data_path_owners(const BudgetSplit& s) {
  std::vector<Owner> owners;
  const auto add = [&](const char* key, const char* name, std::size_t bytes, std::string how) {
    if (bytes > 0) owners.push_back({key, name, bytes, std::move(how)});
  };
  add("read_ahead", "compressed read-ahead", s.chunks * ChunkPool::chunk_bytes,
      "at most " + std::to_string(s.read_ahead) + " files");
  add("scratch", "codec scratch", s.scratch, "of the decode threads");
  add("augment", "augment copies", s.copies, "one image for each decode thread");
  add("lane", "big lane", s.lane, "data.max_file + data.max_scratch, one at a time");
  add("index", "index", s.index, "names of all files");
  add("tickets", "tickets", s.tickets, "bookkeeping of the samples on their way");
  add("slots", "batch slots", s.slots * s.slot_bytes,
      std::to_string(s.slots) + " x " + readable_bytes(s.slot_bytes));
  return owners;
}

MemoryPlan device_memory(const Config& c, const NetworkRun& run) {
  MemoryPlan plan;
  if (run.device == "cpu") return plan;
  const Holdings h = holdings(c, run.classes);
  const auto add = [&](const char* key, const char* name, std::size_t bytes, std::string how) {
    if (bytes > 0) plan.owners.push_back({key, name, bytes, std::move(how)});
  };
  const SampleLayout sample = task_of(c).sample;
  const StepMemory tensors = activations(c, run);
  const std::size_t step = tensors.peak;
  const bool recorded =
      c.model.compile == "graph" &&
      why_no_capture(run.device, run.ranks == 1, static_cast<int>(c.train.accumulate), c.model.channels_last)
          .empty();
  add("weights", "weights", h.weights, "and running statistics, fp32");
  add("gradients", "gradients", h.gradients, "fp32");
  add("optimiser", "optimiser", h.momenta, "momenta, fp32");
  add("ema", "averaged weights", h.average, "optim.ema");
  add("activations", "activations", step, told_batch(c) + "; forward and backward at their fullest");
  add("recording", "beside the recording", recorded ? tensors.validation : 0,
      "model.compile = \"graph\": a recorded step shares no memory with validation");
  add("input", "input slots",
      of_batch(c, device_slots * (sample.bytes() + sample.label_bytes) +
                      sample.values() * converted_value(c, false)),
      std::to_string(device_slots) + " batches of bytes and one converted");
  add("workspace", run.ranks > 1 ? "cuDNN and NCCL" : "cuDNN workspace",
      cudnn_workspace + (run.ranks > 1 ? nccl_buffers : 0), "an estimate, not measured");
  add("rounding", "allocator's rounding", step / 20, "a twentieth of the activations, an estimate");
  add("context", "context", cuda_context, "CUDA's own and its kernels: an estimate, not measured");
  return plan;
}

LoaderMemory loader_memory(const Config& c, unsigned decode_threads) {
  constexpr std::int64_t usual = 2;
  return {decode_threads, static_cast<std::size_t>(c.pipeline.prefetch.value_or(usual)),
          of_batch(c, task_of(c).sample.values() * 4)};
}

}  // namespace sluice
