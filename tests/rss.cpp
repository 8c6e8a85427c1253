// The data path's memory, seen from outside: runs the real stages in a process of its own, without torch, and
// holds the peak resident size over the idle one against budget.ram + 10 % + 32 MiB. First with a consumer
// that is much slower than the producers, then the other way round; each with a 100-megapixel image and a
// progressive one of 40 megapixels.
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "base/text.hpp"
#include "graph/flow/pipeline.hpp"
#include "run/data/synth.hpp"
#include "run/plan/run_plan.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/jpegs.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

std::size_t status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return std::stoul(line.substr(key.size() + 1)) * 1024;
  return 0;
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

bool run(const Config& config, const char* name, std::chrono::milliseconds step_time,
         std::chrono::milliseconds read_time) {
  Result<DataSets> scanned = scan_data(config);
  if (!scanned) return std::fprintf(stderr, "%s\n", scanned.error().text().c_str()), false;
  auto sets = std::make_shared<const DataSets>(std::move(*scanned));
  Machine machine;
  machine.cpus = 4;
  Result<RunPlan> plan =
      plan_run(config, machine, "cpu", sets->train.index_bytes() + sets->val.index_bytes());
  if (!plan) return std::fprintf(stderr, "%s\n", plan.error().text().c_str()), false;
  const Result<Sequence> sequence = Sequence::make(run_shape(config, *sets));
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().text().c_str()), false;
  plan->pipeline.batches = sequence->batches();

  Stages stages = data_path(sets, *sequence, plan->data);
  stages.read = [read_time, inner = stages.read](const Ticket& t, const TakeChunks& take, const Stop& stop) {
    std::this_thread::sleep_for(read_time);
    return inner(t, take, stop);
  };
  stages.upload = [](Batch&) { return Status(Done{}); };
  std::uint64_t images = 0;
  stages.step = [&](Batch& b) {
    images += b.slot->places();
    std::this_thread::sleep_for(step_time);
    return Status(Done{});
  };
  Ledger ledger(plan->pipeline.split.budget);
  Pipeline pipeline(plan->pipeline, std::move(stages), ledger);
  const std::size_t idle = status_bytes("VmRSS");
  forget_peak();
  const RunEnd end = pipeline.run();
  const std::size_t peak = status_bytes("VmHWM"), budget = ledger.budget();
  const std::size_t allowed = budget + budget / 10 + (std::size_t{32} << 20);
  const std::uint64_t expected =
      2 * (sequence->steps_per_epoch() * sequence->shape().batch + sets->val.size());
  const bool good = end.finished && images == expected && ledger.peak() <= budget && peak - idle <= allowed;
  std::printf(
      "%s: %s: budget %s, ledger peak %s, RSS over idle %s (allowed %s), %llu of %llu images, big lane "
      "%llu%s%s\n",
      name, good ? "ok" : "FAILED", readable_bytes(budget).c_str(), readable_bytes(ledger.peak()).c_str(),
      readable_bytes(peak - idle).c_str(), readable_bytes(allowed).c_str(),
      static_cast<unsigned long long>(images), static_cast<unsigned long long>(expected),
      static_cast<unsigned long long>(end.figures.node(NodeId::lane).items), end.failure ? ": " : "",
      end.failure ? end.failure->text().c_str() : "");
  return good;
}

}  // namespace

int main() {
  const Watchdog dog("data path", std::chrono::seconds(240));
  const TemporaryFolder folder;
  SynthOptions tree;
  tree.dir = (folder / "tree").string();
  tree.classes = 4;
  tree.train_per_class = 60;
  tree.val_per_class = 20;
  if (const Status made = synth(tree); !made)
    return std::fprintf(stderr, "%s\n", made.error().text().c_str()), 1;
  JpegRecipe huge, progressive;
  huge.size = {10'000, 10'000};
  huge.flat = true;
  progressive.size = {8000, 5000};  // 120 MB of coefficients: nearly all of data.max_scratch
  progressive.flat = progressive.progressive = true;
  const auto train = folder.path() / "tree" / "train";
  const auto huge_file = make_jpeg(huge), progressive_file = make_jpeg(progressive);
  for (const auto& entry : std::filesystem::directory_iterator(train)) {
    write_file(entry.path() / "huge.JPEG", huge_file);
    write_file(entry.path() / "progressive.JPEG", progressive_file);
  }
  Config config;
  config.data.train = train;
  config.data.val = folder.path() / "tree" / "val";
  config.data.image_size = 224;
  config.train.batch = 32;
  config.train.epochs = 2;
  config.augment.policy = "trivial_wide";
  config.data.max_scratch = Size{std::size_t{120} << 20};
  config.budget.ram = Size{std::size_t{216} << 20};
  config.pipeline.decode_threads = 2;
  bool good = run(config, "slow consumer", std::chrono::milliseconds(400), std::chrono::milliseconds(0));
  good &= run(config, "slow producers", std::chrono::milliseconds(0), std::chrono::milliseconds(60));
  return good ? 0 : 1;
}
