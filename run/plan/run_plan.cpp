#include "run/plan/run_plan.hpp"

#include "base/text.hpp"
#include "nodes/source/open.hpp"

#include <algorithm>

#include "run/config/step_options.hpp"

namespace sluice {
namespace {

constexpr std::size_t thread_scratch = 8u << 20;  // holds a progressive image of 2.7 megapixels at 4:2:0
// Read-ahead that a file is admitted with. 98 % of ImageNet's files are smaller than the first, 99 % than the
// second; what is larger goes through the big lane, one at a time, which slow storage makes slow.
constexpr std::size_t grant = 256 * 1024, roomy_grant = 512 * 1024, roomy = 512u << 20;
constexpr std::size_t most_readers = 256;               // threads
constexpr std::size_t roomiest = std::size_t{4} << 30;  // more hides nothing that this does not

// A roomy budget grants more, unless there is not enough for it after all: more never refuses what less
// takes.
Result<BudgetSplit> split_with_grant(SplitRequest& r) {
  r.grant = roomy_grant;
  if (r.budget >= roomy)
    if (Result<BudgetSplit> split = split_budget(r); split) return split;
  r.grant = grant;
  return split_budget(r);
}

// Of "auto": no budget that one could set helps where there is no memory for it.
Error nothing_left(const SplitRequest& r, const MemoryPlan& beside, const Machine& machine,
                   const std::string& shared) {
  std::string owners;
  for (const Owner& o : beside.owners)
    owners += "\n  " + o.name + ": " + readable_bytes(o.bytes) + ", " + o.how;
  return {
      "budget", "budget.ram = \"auto\"",
      "too little is left: the data path needs at least " + readable_bytes(least_budget(r)) +
          " and gets half of what " + machine.memory_limit + " (" + readable_bytes(machine.memory) + shared +
          ") leaves beside " + readable_bytes(beside.total()) + ":" + owners + "\n ",
      "lower train.batch or data.image_size, or take a smaller model.arch; `sluice plan` tells what fits"};
}

unsigned at_least_one(std::int64_t n) { return static_cast<unsigned>(std::max<std::int64_t>(n, 1)); }

struct Threads {
  unsigned decode = 1, torch = 1, read = 1;
};

// With a GPU, decoding gets all cores but the two that feed it. On the CPU the network needs them all and
// decoding is the smaller part: a quarter decodes, and torch computes on every core, because a batch that
// is late costs less than cores that idle while all batches are ready.
Threads share_threads(const Config& c, const Machine& machine, const std::string& device,
                      unsigned local_ranks) {
  const unsigned cpus = std::max(machine.cpus / local_ranks, 1u);
  Threads t;
  t.decode = at_least_one(
      c.pipeline.decode_threads.value_or(device == "cuda" ? static_cast<std::int64_t>(cpus) - 2 : cpus / 4));
  t.torch = at_least_one(c.train.threads.value_or(device == "cuda" ? 1 : cpus));
  // Readers sleep in the kernel; their number is how many requests storage sees at once.
  t.read = at_least_one(c.pipeline.read_threads.value_or(16));
  return t;
}

AugmentOptions augment_options(const Config& c) {
  AugmentOptions augment;
  augment.policy = c.augment.policy == "trivial_wide" ? Policy::trivial_wide : Policy::none;
  augment.erase = c.augment.erase;
  return augment;
}

// All but the budget.
SplitRequest split_request(const Config& c, const Threads& threads, std::size_t index_bytes,
                           unsigned local_ranks) {
  const int out = static_cast<int>(task_of(c).sample.width());
  SplitRequest r;
  r.index = index_bytes;
  r.batch = static_cast<std::uint32_t>(c.train.batch);
  const SampleLayout sample = task_of(c).sample;
  r.place_bytes = sample.bytes();
  r.label_bytes = sample.label_bytes;
  r.decode_threads = threads.decode;
  r.max_file = c.data.max_file.bytes;
  r.max_scratch = c.data.max_scratch.bytes;
  r.thread_scratch = std::min(thread_scratch, r.max_scratch);
  r.thread_copy = augment_bytes(augment_options(c).policy, {out, out});
  if (c.pipeline.prefetch) r.slots = at_least_one(*c.pipeline.prefetch);
  if (c.pipeline.read_ahead) r.read_ahead = at_least_one(*c.pipeline.read_ahead);
  r.grant = grant;
  r.sharers = local_ranks;
  return r;
}

}  // namespace

Result<RunPlan> plan_run(const Config& c, const Machine& machine, const std::string& device,
                         std::size_t index_bytes, unsigned local_ranks, std::int64_t classes) {
  RunPlan plan;
  PipelineOptions& p = plan.pipeline;

  const Threads threads = share_threads(c, machine, device, local_ranks);
  p.decode_threads = threads.decode;
  p.read_threads = threads.read;
  plan.torch_threads = threads.torch;
  p.batch = static_cast<std::uint32_t>(c.train.batch);
  const SampleLayout sample = task_of(c).sample;
  p.place_bytes = sample.bytes();
  p.label_bytes = sample.label_bytes;
  p.device_queue = 1;
  const int out = static_cast<int>(sample.width());

  plan.data.augment = augment_options(c);

  SplitRequest r = split_request(c, threads, index_bytes, local_ranks);
  const unsigned readers = c.pipeline.read_threads ? p.read_threads : static_cast<unsigned>(most_readers);
  plan.memory =
      memory_beside(c, {device, classes, local_ranks, p.decode_threads + plan.torch_threads, readers});
  const std::string shared =
      local_ranks > 1 ? ", shared by " + std::to_string(local_ranks) + " ranks" : std::string();
  if (c.budget.ram) {
    r.budget = c.budget.ram->bytes / local_ranks;
    plan.budget_source = "budget.ram = " + readable_bytes(c.budget.ram->bytes) + shared +
                         (local_ranks > 1 ? ": " + readable_bytes(r.budget) + " each" : "");
  } else {
    const std::size_t beside = plan.memory.total();
    const std::size_t memory = machine.memory / local_ranks;
    const std::size_t left = memory > beside ? memory - beside : 0;
    r.budget = std::min(left / 2, roomiest);
    plan.budget_source = "budget.ram = \"auto\": half of what " + machine.memory_limit + " (" +
                         readable_bytes(machine.memory) + shared + ") leaves beside " +
                         readable_bytes(beside) + " for libtorch, network and checkpoint copy, at most " +
                         readable_bytes(roomiest) + "; a margin of " + readable_bytes(left - r.budget) +
                         " stays free";
  }
  Result<BudgetSplit> split = split_with_grant(r);
  if (!split && !c.budget.ram && !c.budget.enforce) {  // told not to heed what is left
    r.budget = least_budget(r);
    plan.budget_source =
        "budget.ram = \"auto\": the least that these settings run with, because too little is left";
    split = split_budget(r);
  }
  if (!split && !c.budget.ram) return nothing_left(r, plan.memory, machine, shared);
  if (!split) {
    if (local_ranks > 1) split.error().cause += " (" + plan.budget_source + ")";
    return split.error();
  }
  p.split = *split;
  for (Owner& owner : data_path_owners(p.split)) plan.memory.owners.push_back(std::move(owner));

  // What the configuration leaves open, the run sizes by itself, within what the split has given.
  SizingOptions sizing;
  sizing.least = sizing.most = {p.read_threads, p.split.read_ahead, p.split.slots};
  if (!c.pipeline.read_threads)
    sizing.most.read_threads = std::clamp(static_cast<unsigned>(std::min(p.split.read_ahead, most_readers)),
                                          p.read_threads, static_cast<unsigned>(most_readers));
  if (!c.pipeline.read_ahead)
    sizing.least.read_ahead = std::min(p.split.read_ahead, std::max<std::size_t>(64, 2 * p.batch));
  if (!c.pipeline.prefetch) sizing.least.slots = std::min(p.split.slots, 3u);
  p.sizing = sizing;

  plan.data.decode_threads = p.decode_threads;
  plan.data.seed = static_cast<std::uint64_t>(c.train.seed);
  plan.data.read.max_file = r.max_file;
  plan.data.decode.out = out;
  plan.data.decode.resize = static_cast<int>(c.data.val_resize);
  plan.data.decode.scale = c.augment.scale;
  plan.data.decode.ratio = c.augment.ratio;
  plan.data.decode.flip = c.augment.flip;
  plan.data.decode.fast = c.augment.decode == "fast";
  plan.data.decode.thread_scratch = r.thread_scratch;
  plan.data.decode.max_scratch = r.max_scratch;
  plan.data.decode.max_pixels = static_cast<std::uint64_t>(c.data.max_pixels);
  return plan;
}

std::size_t least_ram(const Config& c, const Machine& machine, const std::string& device,
                      std::size_t index_bytes, unsigned local_ranks) {
  return least_budget(
      split_request(c, share_threads(c, machine, device, local_ranks), index_bytes, local_ranks));
}

FolderOptions folder_options(const Config& c) {
  FolderOptions options;
  options.exclude = c.data.exclude;
  options.classes = static_cast<std::size_t>(c.data.classes);
  options.subset_seed = static_cast<std::uint64_t>(c.data.subset_seed);
  return options;
}

Result<DataSets> scan_data(const Config& c) {
  FolderOptions options = folder_options(c);
  options.per_class = static_cast<std::size_t>(c.data.per_class);
  Result<std::shared_ptr<const Source>> train = open_source(c.data.train.string(), options);
  if (!train) return train.error();
  options.expect = (*train)->class_names();
  options.per_class = 0;
  Result<std::shared_ptr<const Source>> val = open_source(c.data.val.string(), options);
  if (!val) return val.error();
  return DataSets{*train, *val};
}

Result<DataSets> scan_validation(const Config& c) {
  Result<std::shared_ptr<const Source>> val = open_source(c.data.val.string(), folder_options(c));
  if (!val) return val.error();
  return DataSets{*val, *val};
}

RunShape run_shape(const Config& c, const DataSets& sets, const Seat& seat) {
  RunShape s;
  s.train_images = sets.train->size();
  s.val_images = sets.val->size();
  s.batch = static_cast<std::uint32_t>(c.train.batch);
  s.rank = static_cast<std::uint32_t>(seat.rank);
  s.ranks = static_cast<std::uint32_t>(seat.world);
  s.accumulate = static_cast<std::uint32_t>(c.train.accumulate);
  s.epochs = static_cast<std::uint32_t>(c.train.epochs);
  s.max_steps = static_cast<std::uint64_t>(c.train.max_steps);
  s.seed = static_cast<std::uint64_t>(c.train.seed);
  return s;
}

}  // namespace sluice
