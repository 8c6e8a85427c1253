#include "run/plan/run_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/text.hpp"
#include "graph/memory/chunks.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024, GiB = 1024 * MiB;

Machine machine(unsigned cpus, std::size_t memory) { return {cpus, memory, "MemAvailable"}; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

RunPlan planned(const Config& c, const Machine& m, const std::string& device, std::size_t index = 0) {
  Result<RunPlan> plan = plan_run(c, m, device, index);
  REQUIRE_MESSAGE(plan, plan.error().text());
  return *plan;
}

std::string refused(const Config& c, const Machine& m, const std::string& device) {
  const Result<RunPlan> plan = plan_run(c, m, device, 0);
  REQUIRE_FALSE(plan);
  return plan.error().text();
}

// The number that follows `before` in `text`.
std::size_t number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return std::stoul(text.substr(at + before.size()));
}

}  // namespace

TEST_CASE("run plan: the ranks of a host share its cores and its memory") {
  Config c;
  c.train.batch = 32;
  Machine host = machine(16, 128 * GiB);
  const auto of = [&](unsigned ranks, const std::string& device) {
    Result<RunPlan> plan = plan_run(c, host, device, 0, ranks);
    REQUIRE_MESSAGE(plan, plan.error().text());
    return *plan;
  };
  CHECK(of(2, "cuda").pipeline.decode_threads == 6);
  CHECK(of(2, "cpu").torch_threads == 8);
  CHECK(of(32, "cuda").pipeline.decode_threads == 1);
  host.memory = 64 * GiB;
  c.model.arch = "resnet18";
  const std::size_t alone = of(1, "cuda").pipeline.split.budget, each = of(16, "cuda").pipeline.split.budget;
  CHECK(alone == 4 * GiB);
  CHECK(each == planned(c, machine(1, 4 * GiB), "cuda").pipeline.split.budget);
  CHECK(has(of(4, "cuda").budget_source, "shared by 4 ranks"));
  c.budget.ram = Size{2 * GiB};
  CHECK(of(4, "cuda").pipeline.split.budget == 512 * MiB);
  c.budget.ram = Size{128 * MiB};
  const Result<RunPlan> refused = plan_run(c, host, "cuda", 0, 4);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "budget.ram = 32.0 MiB"));
  CHECK(has(refused.error().text(), "(budget.ram = 128.0 MiB, shared by 4 ranks: 32.0 MiB each)"));
  // What is advised is for all of them together.
  const std::size_t least = number_after(refused.error().text(), "set budget.ram to \"");
  c.budget.ram = Size{least * MiB};
  CHECK(plan_run(c, host, "cuda", 0, 4));
  c.budget.ram = Size{(least - 4) * MiB};
  CHECK_FALSE(plan_run(c, host, "cuda", 0, 4));
}

TEST_CASE("run plan: with a GPU, all cores but two decode and torch needs one") {
  const Config c;
  for (const auto& [cpus, decode] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 1u}, {8u, 6u}, {64u, 62u}}) {
    CAPTURE(cpus);
    const RunPlan plan = planned(c, machine(cpus, 64 * GiB), "cuda");
    CHECK(plan.pipeline.decode_threads == decode);
    CHECK(plan.data.decode_threads == decode);
    CHECK(plan.torch_threads == 1);
    CHECK(plan.pipeline.read_threads == 16);
  }
}

TEST_CASE("run plan: on the CPU, a quarter of the cores decodes and torch takes them all") {
  Config c;
  c.train.batch = 32;
  for (const auto& [cpus, decode] : {std::pair{1u, 1u}, {2u, 1u}, {7u, 1u}, {8u, 2u}, {64u, 16u}}) {
    CAPTURE(cpus);
    const RunPlan plan = planned(c, machine(cpus, 64 * GiB), "cpu");
    CHECK(plan.pipeline.decode_threads == decode);
    CHECK(plan.data.decode_threads == decode);
    CHECK(plan.torch_threads == cpus);
    CHECK(plan.pipeline.read_threads == 16);
  }
}

TEST_CASE("run plan: what the configuration says is kept on any machine") {
  Config c;
  c.pipeline.read_threads = 5;
  c.pipeline.decode_threads = 7;
  c.pipeline.read_ahead = 33;
  c.pipeline.prefetch = 4;
  c.train.threads = 3;
  c.train.batch = 48;
  c.budget.ram = Size{3 * GiB};
  for (const std::string device : {"cpu", "cuda"}) {
    for (const unsigned cpus : {1u, 64u}) {
      CAPTURE(device);
      CAPTURE(cpus);
      const RunPlan plan = planned(c, machine(cpus, 1 * GiB), device, 12345);
      CHECK(plan.pipeline.read_threads == 5);
      CHECK(plan.pipeline.decode_threads == 7);
      CHECK(plan.torch_threads == 3);
      CHECK(plan.pipeline.batch == 48);
      const BudgetSplit& s = plan.pipeline.split;
      CHECK(s.slots == 4);
      CHECK(s.read_ahead == 33);
      CHECK(s.chunks == 33 * s.grant_chunks);
      CHECK(s.index == 12345);
      CHECK(s.budget == 3 * GiB);
    }
  }
}

TEST_CASE("run plan: what is left open sizes itself within the split; what is given does not") {
  Config c;
  c.budget.ram = Size{1 * GiB};
  c.train.batch = 32;
  RunPlan plan = planned(c, machine(8, 8 * GiB), "cuda");
  REQUIRE(plan.pipeline.sizing);
  SizingOptions z = *plan.pipeline.sizing;
  const BudgetSplit& s = plan.pipeline.split;
  CHECK(z.least == Sizes{16, 64, 3});
  CHECK(z.most == Sizes{256, s.read_ahead, s.slots});
  CHECK(s.read_ahead == 512);
  CHECK(s.slots == 6);
  c.train.batch = 128;
  CHECK(planned(c, machine(8, 8 * GiB), "cuda").pipeline.sizing->least.read_ahead == 256);

  c.pipeline.read_threads = 5;
  c.pipeline.read_ahead = 33;
  c.pipeline.prefetch = 4;
  plan = planned(c, machine(8, 8 * GiB), "cuda");
  CHECK(plan.pipeline.sizing->least == Sizes{5, 33, 4});
  CHECK(plan.pipeline.sizing->most == Sizes{5, 33, 4});
}

TEST_CASE("run plan: a roomy budget admits files of twice the size") {
  Config c;
  c.train.batch = 32;
  for (const auto& [ram, chunks] : {std::pair{256 * MiB, 16u}, {511 * MiB, 16u}, {512 * MiB, 32u}}) {
    c.budget.ram = Size{ram};
    CHECK(planned(c, machine(8, 8 * GiB), "cuda").pipeline.split.grant_chunks == chunks);
  }
}

TEST_CASE("run plan: the stages get the configuration's values") {
  Config c;
  c.data.image_size = 96;
  c.data.val_resize = 128;
  c.data.max_file = Size{3 * MiB};
  c.data.max_scratch = Size{20 * MiB};
  c.data.max_pixels = 12345;
  c.augment.scale = {0.25, 0.75};
  c.augment.ratio = {0.5, 2};
  c.augment.flip = 0.1;
  c.augment.policy = "trivial_wide";
  c.augment.erase = 0.2;
  c.train.seed = 99;
  const RunPlan plan = planned(c, machine(8, 64 * GiB), "cuda");
  CHECK(plan.pipeline.place_bytes == 96 * 96 * 3);
  CHECK(plan.data.decode.out == 96);
  CHECK(plan.data.decode.resize == 128);
  CHECK(plan.data.decode.scale == Range{0.25, 0.75});
  CHECK(plan.data.decode.ratio == Range{0.5, 2});
  CHECK(plan.data.decode.max_scratch == 20 * MiB);
  CHECK(plan.data.decode.max_pixels == 12345);
  CHECK(plan.data.read.max_file == 3 * MiB);
  CHECK(plan.data.decode.flip == 0.1);
  CHECK(plan.data.augment.policy == Policy::trivial_wide);
  CHECK(plan.data.augment.erase == 0.2);
  CHECK(plan.data.seed == 99);
  CHECK(plan.pipeline.split.lane == 23 * MiB);
}

TEST_CASE("run plan: a policy's copies are budgeted, one image for each decode thread") {
  Config c;
  const Machine m = machine(10, 64 * GiB);
  const RunPlan without = planned(c, m, "cuda");
  CHECK(without.data.augment.policy == Policy::none);
  CHECK(without.pipeline.split.copies == 0);
  CHECK_FALSE(has(without.pipeline.split.table(), "augment"));
  c.augment.policy = "trivial_wide";
  const RunPlan with = planned(c, m, "cuda");
  CHECK(with.pipeline.split.copies == 8 * round_to_pages(224 * 224 * 3));
  CHECK(has(with.pipeline.split.table(), "augment           1.2 MiB"));
}

TEST_CASE("run plan: a thread's scratch is never above data.max_scratch") {
  Config c;
  c.data.image_size = 64;
  for (const std::size_t most : {1 * MiB, 8 * MiB - 1, 8 * MiB, 8 * MiB + 1, 512 * MiB}) {
    CAPTURE(most);
    c.data.max_scratch = Size{most};
    const RunPlan plan = planned(c, machine(10, 64 * GiB), "cuda");
    CHECK(plan.data.decode.thread_scratch <= most);
    CHECK(plan.data.decode.thread_scratch == std::min(most, 8 * MiB));
    CHECK(plan.data.decode.max_scratch == most);
    CHECK(plan.pipeline.split.scratch == 8 * plan.data.decode.thread_scratch);  // what is used is budgeted
  }
}

TEST_CASE("run plan: an automatic budget is half of what is left beside the network, up to a cap") {
  Config c;
  c.train.batch = 64;
  const auto budget = [&](std::size_t memory, const std::string& device) {
    return planned(c, machine(4, memory), device).pipeline.split.budget;
  };
  CHECK(budget(1024 * GiB, "cuda") == 4 * GiB);
  CHECK(budget(1024 * GiB, "cpu") == 4 * GiB);
  // Half of each further byte below the cap, on either device.
  CHECK(budget(6 * GiB, "cuda") - budget(4 * GiB, "cuda") == 1 * GiB);
  CHECK(budget(11 * GiB, "cpu") - budget(9 * GiB, "cpu") == 1 * GiB);
  CHECK(budget(4 * GiB, "cuda") < 2 * GiB);
  CHECK(budget(9 * GiB, "cpu") < budget(9 * GiB, "cuda"));  // activations are on the device there

  const auto on_cpu = [&] { return budget(9 * GiB, "cpu"); };
  const std::size_t before = on_cpu();
  c.model.arch = "resnet18";
  CHECK(on_cpu() > before);
  c.model.arch = "resnet50";
  c.data.image_size = 160;
  CHECK(on_cpu() > before);
  c.data.image_size = 224;
  c.train.batch = 32;
  CHECK(on_cpu() > before);

  const RunPlan plan = planned(c, machine(4, 4 * GiB), "cuda");
  CHECK(has(plan.budget_source, "\"auto\""));
  CHECK(has(plan.budget_source, "MemAvailable (4096.0 MiB)"));
}

TEST_CASE("run plan: an automatic budget counts with the memory plan, and tells the margin") {
  Config c;
  c.model.arch = "resnet18";
  c.data.image_size = 64;
  c.train.batch = 32;
  for (const std::string device : {"cpu", "cuda"}) {
    const unsigned threads = device == "cpu" ? 1 + 4 : 2 + 1, readers = 256;  // as many as it may come to
    const std::size_t beside = memory_beside(c, {device, 10, 1, threads, readers}).total(), left = 2 * GiB;
    const Result<RunPlan> plan = plan_run(c, machine(4, beside + left), device, 0, 1, 10);
    REQUIRE_MESSAGE(plan, plan.error().text());
    CHECK(plan->pipeline.split.budget == left / 2);
    CHECK(has(plan->budget_source, "beside " + readable_bytes(beside)));
    CHECK(has(plan->budget_source, "a margin of 1024.0 MiB stays free"));
    CHECK(plan->memory.total() == beside + plan->pipeline.split.total());
    CHECK(plan->memory.total() <= beside + left);
  }
}

TEST_CASE("run plan: a budget that is given stands, whatever the machine has") {
  Config c;
  c.budget.ram = Size{700 * MiB};
  for (const std::size_t memory : {std::size_t{0}, 1 * GiB, 1024 * GiB}) {
    const RunPlan plan = planned(c, machine(4, memory), "cuda");
    CHECK(plan.pipeline.split.budget == 700 * MiB);
    CHECK(plan.budget_source == "budget.ram = 700.0 MiB");
  }
}

TEST_CASE("run plan: a budget that is too small is refused with the arithmetic and the smallest that works") {
  Config c;
  c.budget.ram = Size{100 * MiB};
  const Machine m = machine(8, 64 * GiB);
  const std::string text = refused(c, m, "cuda");
  CHECK(has(text, "budget.ram = 100.0 MiB"));
  CHECK(has(text, "2 x 36.8 MiB"));  // two slots of 256 images
  CHECK(has(text, "48.0 MiB"));      // scratch of six threads
  CHECK(has(text, "80.0 MiB"));      // the big lane: 16 + 64
  CHECK_FALSE(has(text, "auto"));
  const std::size_t least = number_after(text, "set budget.ram to \"");
  c.budget.ram = Size{least * MiB};
  CHECK(planned(c, m, "cuda").pipeline.split.total() <= least * MiB);
  c.budget.ram = Size{(least - 1) * MiB};
  CHECK(has(refused(c, m, "cuda"), "set budget.ram to \"" + std::to_string(least) + "MiB\""));
}

TEST_CASE("run plan: a larger budget is never refused where a smaller one is taken") {
  Config c;
  c.pipeline.decode_threads = 24;  // with the larger grant of a roomy budget, these need more than 512 MiB
  for (std::int64_t batch = 16; batch <= 512; batch += 16) {
    c.train.batch = batch;
    bool taken = false;
    for (std::size_t mib = 300; mib < 700; mib += 4) {
      c.budget.ram = Size{mib * MiB};
      const bool now = static_cast<bool>(plan_run(c, machine(8, 64 * GiB), "cuda", 0));
      CAPTURE(mib);
      REQUIRE((now || !taken));
      taken = now;
    }
    CHECK(taken);
  }
}

TEST_CASE(
    "run plan: a machine with too little left is refused with what takes it, not with a budget to set") {
  Config c;  // resnet50 at 256: activations alone are more than 20 GiB on a CPU
  for (const std::size_t memory : {std::size_t{0}, 1 * GiB, 8 * GiB}) {
    CAPTURE(memory);
    const std::string text = refused(c, machine(4, memory), "cpu");
    CHECK(has(text, "budget.ram = \"auto\": too little is left"));
    CHECK(has(text, "half of what MemAvailable (" + readable_bytes(memory) + ") leaves"));
    CHECK(has(text, "\n  activations: "));
    CHECK(has(text, "lower train.batch"));
    CHECK_FALSE(has(text, "set budget.ram"));
  }
  // Told not to heed it: the least that runs.
  c.budget.enforce = false;
  const RunPlan plan = planned(c, machine(4, 1 * GiB), "cpu");
  CHECK(plan.pipeline.split.budget == least_ram(c, machine(4, 1 * GiB), "cpu", 0));
  CHECK(has(plan.budget_source, "the least that these settings run with"));
}

TEST_CASE("run plan: what is given out never exceeds the budget") {
  unsigned fit = 0, refusals = 0;
  const auto check = [&](const Config& c, const Machine& m, const std::string& device, std::size_t index) {
    const Result<RunPlan> plan = plan_run(c, m, device, index);
    if (!plan) {
      ++refusals;
      return;
    }
    ++fit;
    const BudgetSplit& s = plan->pipeline.split;
    CAPTURE(s.table());
    CHECK(s.total() <= s.budget);
    CHECK(s.budget <= (c.budget.ram ? c.budget.ram->bytes : m.memory / 2));
    CHECK(s.slots >= 2);
    CHECK(s.slot_bytes >= plan->pipeline.batch * plan->pipeline.place_bytes);
    CHECK(s.chunks >= (plan->pipeline.decode_threads + 1) * s.grant_chunks);
    CHECK(s.index == index);
  };
  for (const std::int64_t batch : {1, 8, 100, 256, 4096})
    for (const std::int64_t size : {32, 224, 512})
      for (const unsigned cpus : {1u, 2u, 16u, 128u})
        for (const std::string device : {"cpu", "cuda"})
          for (std::size_t memory = 64 * MiB; memory <= 300 * GiB; memory *= 3)
            for (const int kind : {0, 1, 2}) {
              Config c;
              c.train.batch = batch;
              c.data.image_size = size;
              if (kind > 0) c.budget.ram = Size{memory};
              if (kind == 2) c.pipeline.prefetch = 5, c.pipeline.read_ahead = 100'000;
              check(c, machine(cpus, memory), device, cpus * 5 * MiB);
            }
  CHECK(fit > 300);
  CHECK(refusals > 300);
}

TEST_CASE("run plan: both trees are scanned, with one list of classes") {
  const TemporaryFolder tree;
  for (const std::string name : {"train/a/1.jpg", "train/a/2.jpg", "train/b/1.jpg", "train/b/2.jpg",
                                 "train/b/3.jpg", "val/a/1.jpg", "val/a/2.jpg", "val/b/1.jpg", "val/b/2.jpg"})
    write_file(tree / name, "x");
  Config c;
  c.data.train = tree / "train";
  c.data.val = tree / "val";
  const auto sizes = [&] {
    const Result<DataSets> sets = scan_data(c);
    REQUIRE_MESSAGE(sets, sets.error().text());
    CHECK(sets->train->class_names() == sets->val->class_names());
    return std::pair{sets->train->size(), sets->val->size()};
  };
  CHECK(sizes() == std::pair<std::size_t, std::size_t>{5, 4});
  c.data.per_class = 1;  // less to learn from, but judged by the same images
  CHECK(sizes() == std::pair<std::size_t, std::size_t>{2, 4});
  c.data.exclude = {"a/1.jpg", "b/1.jpg"};
  CHECK(sizes() == std::pair<std::size_t, std::size_t>{2, 2});
  c.data.classes = 1;
  CHECK(sizes() == std::pair<std::size_t, std::size_t>{1, 1});
}

TEST_CASE("run plan: trees with different classes are refused, and so is a tree that is not there") {
  const TemporaryFolder tree;
  for (const std::string name : {"train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/c/1.jpg"})
    write_file(tree / name, "x");
  Config c;
  c.data.train = tree / "train";
  c.data.val = tree / "val";
  const auto failure = [&] {
    const Result<DataSets> sets = scan_data(c);
    REQUIRE_FALSE(sets);
    return sets.error().text();
  };
  std::string text = failure();
  CHECK(has(text, (tree / "val").string()));
  CHECK(has(text, "missing (1): b"));
  CHECK(has(text, "surplus (1): c"));
  c.data.val = tree / "none";
  text = failure();
  CHECK(has(text, (tree / "none").string()));
  CHECK(has(text, "No such file"));
  c.data.train = tree / "gone";
  CHECK(has(failure(), (tree / "gone").string()));
}
