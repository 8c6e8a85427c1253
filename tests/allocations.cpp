// What the data path allocates for an image once it runs: nothing of ours. Counts calls of operator new
// (ours) and of malloc (libjpeg's and TBB's, told apart by thread: only decode threads run libjpeg) between
// two batches of a run. In a program of its own, because it replaces both.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "graph/flow/pipeline.hpp"
#include "run/data/synth.hpp"
#include "run/plan/run_plan.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> by_new{0}, by_malloc{0};
thread_local bool on_main = false;  // it looks at the run ten times a second, however many images there were

// Not inlined, so that a debugger can stop here and tell who it was.
[[gnu::noinline]] void count(std::atomic<long>& calls) {
  if (on_main) return;
  calls.fetch_add(1, std::memory_order_relaxed);
}

void* raw_malloc(std::size_t bytes) {
  using Malloc = void* (*)(std::size_t);
  static const auto real = reinterpret_cast<Malloc>(dlsym(RTLD_NEXT, "malloc"));
  return real(bytes);
}

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) count(by_malloc);
  return raw_malloc(bytes);
}

void* operator new(std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) count(by_new);
  if (void* memory = raw_malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace sluice;
using namespace sluice::test;

int main() {
  on_main = true;
  constexpr std::uint64_t warm = 40, until = 120;
  const Watchdog dog("data path", std::chrono::seconds(240));
  const TemporaryFolder folder;
  SynthOptions tree;
  tree.dir = (folder / "tree").string();
  tree.classes = 2;
  tree.train_per_class = 64;
  tree.val_per_class = 4;
  if (const Status made = synth(tree); !made)
    return std::fprintf(stderr, "%s\n", made.error().text().c_str()), 1;
  Config config;
  config.data.train = folder.path() / "tree" / "train";
  config.data.val = folder.path() / "tree" / "val";
  config.data.image_size = 96;
  config.train.batch = 16;
  config.train.epochs = 100;
  config.train.max_steps = until;
  config.budget.ram = Size{std::size_t{160} << 20};
  config.pipeline.decode_threads = 2;
  config.pipeline.read_threads = 2;
  Result<DataSets> scanned = scan_data(config);
  if (!scanned) return std::fprintf(stderr, "%s\n", scanned.error().text().c_str()), 1;
  auto sets = std::make_shared<const DataSets>(std::move(*scanned));
  Machine machine;
  machine.cpus = 2;
  Result<RunPlan> plan = plan_run(config, machine, "cpu", sets->train->index_bytes());
  if (!plan) return std::fprintf(stderr, "%s\n", plan.error().text().c_str()), 1;
  RunShape shape = run_shape(config, *sets);
  shape.validate = false;
  const Result<Sequence> sequence = Sequence::make(shape);
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().text().c_str()), 1;
  plan->pipeline.batches = sequence->batches();
  Stages stages = data_path(sets, *sequence, plan->data);
  stages.upload = [](Batch&) { return Status(Done{}); };
  stages.step = [&](Batch& b) {
    if (b.number == warm) counting = true;
    if (b.number + 1 == until) counting = false;
    return Status(Done{});
  };
  Pipeline pipeline(plan->pipeline, std::move(stages));
  const RunEnd end = pipeline.run();
  const double images = static_cast<double>((until - 1 - warm) * 16);
  const double own = static_cast<double>(by_new) / images,
               libraries = static_cast<double>(by_malloc) / images;
  // A batch that waits for its slot takes a node of a map: one for many images.
  const bool good = end.finished && own < 0.2;
  std::printf("%s: %.3f allocations of ours per image, %.1f of libjpeg and TBB\n", good ? "ok" : "FAILED",
              own, libraries);
  return good ? 0 : 1;
}
