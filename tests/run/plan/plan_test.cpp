#include "run/plan/plan.hpp"

#include <doctest/doctest.h>

#include "model/network/activations.hpp"
#include "run/config/step_options.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024, GiB = 1024 * MiB;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

PlanRequest request(const std::string& device = "cuda") {
  PlanRequest r;
  r.config_name = "x.toml";
  r.config.data.train = "nowhere/train";
  r.config.data.val = "nowhere/val";
  r.config.model.precision = device == "cuda" ? "fp16" : "fp32";
  r.device = device;
  r.machine.name = "box";
  r.machine.host = {16, 62 * GiB, "the machine file"};
  r.machine.gpus = device == "cuda" ? 1 : 0;
  if (device == "cuda") r.machine.gpu_memory = 22 * GiB;
  r.data = assumed_data(r.config);
  return r;
}

// The first number behind "--set key=" in the plan's problems, 0 if there is none.
std::int64_t advised(const Plan& plan, const std::string& key) {
  for (const Error& e : plan.problems)
    if (const std::size_t at = e.hint.find("--set " + key + "="); at != std::string::npos)
      return std::stoll(e.hint.substr(at + 7 + key.size()));
  return 0;
}

std::size_t sum_of(const nlohmann::ordered_json& room) {
  std::size_t sum = 0;
  for (const auto& owner : room["owners"]) sum += owner["bytes"].get<std::size_t>();
  return sum;
}

}  // namespace

TEST_CASE("plan: without the data set, ImageNet's numbers, and it says so") {
  Config c;
  c.data.train = "nowhere/train";
  c.data.val = "nowhere/val";
  const auto data = [&](const ImageCounts& given = {}) {
    const Result<PlanData> d = plan_data(c, given);
    REQUIRE_MESSAGE(d, d.error().text());
    return *d;
  };
  CHECK(data().train_images == 1'281'167);
  CHECK(data().val_images == 50'000);
  CHECK(data().classes == 1000);
  CHECK(has(data().source, "ImageNet's numbers: nowhere/train is not there"));
  c.data.classes = 100;
  CHECK(data().train_images == 128'116);
  CHECK(data().val_images == 5000);
  CHECK(data().classes == 100);
  CHECK(has(data().source, "100 of 1000 classes"));
  c.data.per_class = 10;
  CHECK(data().train_images == 1000);
  CHECK(data({500, 20}).train_images == 500);
  CHECK(data({500, 20}).val_images == 20);
  CHECK(data({500, 20}).source == "--images and --val-images");
  CHECK(has(data({500, {}}).source, "--images, else ImageNet"));
  c.data.classes = c.data.per_class = 0;
  c.data.synth = true;
  CHECK(data().train_images == 1200);
  CHECK(has(data().source, "data.synth"));
}

TEST_CASE("plan: with the data set, its own numbers") {
  const TemporaryFolder tree;
  for (const std::string name :
       {"train/a/1.jpg", "train/a/2.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg"})
    write_file(tree / name, "x");
  Config c;
  c.data.train = tree / "train";
  c.data.val = tree / "val";
  const Result<PlanData> d = plan_data(c);
  REQUIRE(d);
  CHECK(d->train_images == 3);
  CHECK(d->val_images == 2);
  CHECK(d->classes == 2);
  CHECK(d->source == "counted in the folders");
  CHECK(plan_data(c, {7, {}})->train_images == 7);
  std::filesystem::remove_all(tree / "val/b");
  CHECK_FALSE(plan_data(c));  // a tree that is there and cannot be used is no reason to make numbers up
}

TEST_CASE("plan: the totals are the sums of the owners, and all owners are there") {
  for (const std::string device : {"cpu", "cuda"}) {
    CAPTURE(device);
    PlanRequest r = request(device);
    r.config.train.batch = 32;
    r.config.optim.ema = 0.999;
    const Plan plan = make_plan(r);
    REQUIRE(plan.run);
    const auto json = plan_json(plan);
    CHECK(json["fits"] == true);
    CHECK(sum_of(json["ram"]) == json["ram"]["total_bytes"]);
    CHECK(json["ram"]["total_bytes"].get<std::size_t>() + json["ram"]["margin_bytes"].get<std::size_t>() ==
          62 * GiB);
    const MemoryPlan& ram = plan.here.ram.memory;
    for (const char* key :
         {"process", "weights", "checkpoint", "read_ahead", "scratch", "lane", "index", "tickets", "slots"})
      CHECK_MESSAGE(ram.of(key) > 0, key);
    CHECK((ram.of("activations") > 0) == (device == "cpu"));
    CHECK((ram.of("staging") > 0) == (device == "cpu"));
    std::size_t data_path = 0;
    for (const Owner& o : data_path_owners(plan.run->pipeline.split)) data_path += o.bytes;
    CHECK(data_path == plan.run->pipeline.split.total());
    CHECK(json["budget"]["data_path_bytes"] == data_path);
    CHECK(ram.total() == plan.run->memory.total());  // what the run itself counts with
    if (device == "cpu") {
      CHECK(json["vram"].is_null());
      continue;
    }
    CHECK(sum_of(json["vram"]) == json["vram"]["total_bytes"]);
    for (const char* key :
         {"weights", "gradients", "optimiser", "ema", "activations", "input", "workspace", "context"})
      CHECK_MESSAGE(plan.here.vram.memory.of(key) > 0, key);
    CHECK(plan.here.vram.memory.of("gradients") == 4 * 25'557'032u);
    CHECK(plan.here.vram.memory.of("input") == 3 * 32 * (224 * 224 * 3 + 4u) + 32 * 224 * 224 * 3 * 2u);
  }
}

TEST_CASE("plan: activations are those of the walk over the network") {
  PlanRequest r = request();
  StepShape shape;
  shape.precision = "fp16";
  const auto planned = [&] { return make_plan(r).here.vram.memory.of("activations"); };
  CHECK(planned() == step_memory(shape).peak);
  r.config.model.recompute = shape.recompute = true;
  CHECK(planned() == step_memory(shape).peak);
  r.config.train.batch = shape.batch = 64;
  CHECK(planned() == step_memory(shape).peak);
}

TEST_CASE("plan: beside it, what a loader of FP32 batches would hold") {
  PlanRequest r = request();
  r.config.pipeline.decode_threads = 12;
  r.config.pipeline.prefetch = 3;
  const Plan plan = make_plan(r);
  CHECK(plan.loader.batch_bytes == 154'140'672);
  CHECK(plan.loader.total() == 12 * 3 * std::size_t{154'140'672});
  CHECK(
      has(plan_text(plan), "12 workers (decode threads) x 3 batches ahead (pipeline.prefetch) x 154140672"));
  r.config.pipeline.prefetch.reset();
  CHECK(make_plan(r).loader.total() == 12 * 2 * std::size_t{154'140'672});
  CHECK(make_plan(r).run->pipeline.split.total() < make_plan(r).loader.total());
}

TEST_CASE("plan: steps, time and learning rate on more devices") {
  PlanRequest r = request();
  r.machine.gpus = 8;
  r.config.train.epochs = 10;
  r.config.optim.lr = 0.5;
  Plan plan = make_plan(r);
  CHECK(plan.here.steps_per_epoch == 5004);
  CHECK(plan.here.val_batches == 196);
  CHECK(plan.here.steps == 50'040);
  CHECK(plan.here.run_seconds == 0);
  CHECK(has(plan_text(plan), "not known without a rate"));
  CHECK(plan_json(plan)["time"]["run_seconds"].is_null());

  r.rate = 1000;
  plan = make_plan(r);
  CHECK(plan.here.epoch_seconds == doctest::Approx((5004 * 256 + 50'000 / 3.0) / 1000));
  CHECK(plan.here.run_seconds == doctest::Approx(10 * plan.here.epoch_seconds));
  REQUIRE(plan.scaling.size() == 4);
  const Scale eight = plan.scaling[3];
  CHECK(eight.devices == 8);
  CHECK(eight.steps_per_epoch == 1'281'167 / (8 * 256));
  CHECK(eight.lr == doctest::Approx(8 * plan.here.lr));
  CHECK(eight.epoch_seconds == doctest::Approx(plan.here.epoch_seconds / 8).epsilon(0.01));
  // One copy of the checkpoint for all ranks of the host.
  CHECK(eight.ram.total == 8 * eight.ram.memory.total() - 7 * eight.ram.memory.of("checkpoint"));
  r.devices = 8;
  CHECK(make_plan(r).here.ram.total == eight.ram.total);
  r.devices = 4, r.nodes = 2;
  plan = make_plan(r);
  CHECK(plan.here.steps_per_epoch == eight.steps_per_epoch);
  CHECK(plan.here.lr == eight.lr);
  r.config.train.max_steps = 100;
  CHECK(make_plan(r).here.steps == 100);
}

TEST_CASE("plan: VRAM that does not suffice is told, and what is advised fits") {
  PlanRequest r = request();
  r.machine.gpu_memory = 8 * GiB;
  const Plan plan = make_plan(r);
  CHECK_FALSE(plan.fits());
  REQUIRE(plan.problems.size() == 1);
  CHECK(has(plan.problems[0].text(), "VRAM: does not fit"));
  CHECK(has(plan_text(plan), "DOES NOT FIT"));
  CHECK(has(plan_text(plan), "TOO MUCH"));
  CHECK(plan_json(plan)["vram"]["margin_bytes"].get<std::int64_t>() < 0);
  CHECK(plan_json(plan)["ram"]["fits"] == true);
  const std::int64_t batch = advised(plan, "train.batch");
  REQUIRE(batch > 0);
  r.config.train.batch = batch;
  CHECK(make_plan(r).fits());
  r.config.train.batch = batch + 1;
  CHECK_FALSE(make_plan(r).fits());
  r.config.train.batch = 256;
  if (has(plan.problems[0].hint, "recompute")) {
    r.config.model.recompute = true;
    CHECK(make_plan(r).fits());
  }
  r.machine.gpu_memory = 1 * GiB;
  CHECK(has(make_plan(r).problems[0].hint, "no smaller batch, image or network fits here"));
  r.machine.gpu_memory = 0;  // not known: nothing to hold it against
  CHECK(make_plan(r).fits());
  CHECK(plan_json(make_plan(r))["vram"]["fits"].is_null());
}

TEST_CASE("plan: RAM that does not suffice is told, and what is advised fits") {
  PlanRequest r = request("cpu");  // resnet50 at 256: tens of GiB of activations
  r.machine.host.memory = 16 * GiB;
  Plan plan = make_plan(r);
  CHECK_FALSE(plan.fits());
  REQUIRE(plan.problems.size() == 1);
  INFO(plan.problems[0].text());
  CHECK(has(plan.problems[0].text(), "RAM: does not fit"));
  r.config.train.batch = advised(plan, "train.batch");
  REQUIRE(r.config.train.batch > 0);
  CHECK(make_plan(r).fits());
  ++r.config.train.batch;
  CHECK_FALSE(make_plan(r).fits());
  --r.config.train.batch;

  r.config.budget.ram = Size{15 * GiB};  // stands as it is given, and is too much
  r.config.pipeline.read_ahead = 1'000'000;
  plan = make_plan(r);
  CHECK_FALSE(plan.fits());
  CHECK(has(plan.problems[0].text(), "RAM: does not fit"));
  CHECK(has(plan.problems[0].hint, "budget.ram=auto"));
  r.config.budget.ram = Size{10 * MiB};  // and too little
  plan = make_plan(r);
  CHECK_FALSE(plan.fits());
  CHECK(has(plan.problems[0].text(), "budget.ram = 10.0 MiB: too small"));
  CHECK(has(plan_text(plan), "DOES NOT FIT"));
  CHECK(plan_json(plan)["fits"] == false);
}

// All "--set key=value" up to the next " fits" of the first problem's hint.
void follow(PlanRequest& r, const Plan& plan) {
  const std::string& hint = plan.problems.at(0).hint;
  std::vector<std::string> sets;
  const std::size_t end = hint.find(" fits");
  for (std::size_t at = 0; (at = hint.find("--set ", at)) < end;) {
    at += 6;
    sets.push_back(hint.substr(at, hint.find(' ', at) - at));
  }
  REQUIRE_MESSAGE(!sets.empty(), hint);
  sets.insert(sets.end(), {"data.train=nowhere/train", "data.val=nowhere/val"});
  const Loaded loaded = parse_config(to_toml(r.config), "x.toml", sets);
  REQUIRE_MESSAGE(loaded.errors.empty(), loaded.errors.front().text());
  r.config = loaded.config;
}

TEST_CASE("plan: whatever is advised fits, on small machines and large ones, for each device") {
  int followed = 0, hopeless = 0;
  for (const std::string device : {"cpu", "cuda"})
    for (const std::size_t memory : {512 * MiB, 700 * MiB, 1 * GiB, 2 * GiB, 5 * GiB, 24 * GiB})
      for (const std::int64_t size : {64, 224, 1024})
        for (const std::int64_t batch : {2, 64, 1000})
          for (const bool mixed : {false, true})
            for (const std::size_t budget : {std::size_t{0}, 40 * MiB, 300 * MiB, 3 * GiB}) {
              PlanRequest r = request(device);
              r.machine.host.memory = device == "cuda" ? memory + 2 * GiB : memory;
              r.machine.gpu_memory = device == "cuda" ? memory : 0;
              r.devices = memory > 2 * GiB ? 2 : 1;
              r.machine.gpus = device == "cuda" ? r.devices : 0;
              r.config.data.image_size = size;
              r.config.data.val_resize = 1024;
              r.config.train.batch = batch;
              r.config.augment.mixup = mixed ? 0.2 : 0;
              if (budget > 0) r.config.budget.ram = Size{budget};
              const Plan plan = make_plan(r);
              if (plan.fits()) continue;
              INFO(plan.problems[0].text());
              CHECK_FALSE(within_memory(plan));
              if (has(plan.problems[0].hint, "no smaller batch")) {
                ++hopeless;
                continue;
              }
              if (has(plan.problems[0].hint, "set budget.ram to")) {  // in words, from the split
                const std::size_t at = plan.problems[0].hint.find('"') + 1;
                r.config.budget.ram = Size{std::stoul(plan.problems[0].hint.substr(at)) * MiB};
              } else if (has(plan.problems[0].hint, "budget.ram=auto would")) {
                r.config.budget.ram.reset();
              } else {
                follow(r, plan);
              }
              const Plan again = make_plan(r);
              INFO((again.fits() ? "" : again.problems[0].text()));
              CHECK(again.fits());
              ++followed;
            }
  CHECK(followed > 100);
  CHECK(hopeless > 0);
}

TEST_CASE("plan: a run is refused for memory alone, with the table; budget.enforce = false lets it go") {
  for (const std::string device : {"cpu", "cuda"}) {
    CAPTURE(device);
    PlanRequest r = request(device);
    r.machine.host.memory = 12 * GiB;
    if (device == "cuda") r.machine.gpu_memory = 8 * GiB;
    const Status refused = within_memory(make_plan(r));
    REQUIRE_FALSE(refused);
    const std::string text = refused.error().text();
    INFO(text);
    CHECK(has(text, device == "cuda" ? "plan: VRAM: does not fit: " : "plan: RAM: does not fit: "));
    CHECK(has(text, "\nRAM of the process\n  process and libtorch"));
    CHECK(has(text, "\nVRAM of each device\n") == (device == "cuda"));
    CHECK(has(text, "  activations "));
    CHECK(has(text, "--set train.batch="));
    CHECK(has(text, "budget.enforce = false starts it all the same"));
    CHECK_FALSE(has(within_memory(make_plan(r), false).error().text(), "  activations "));
    r.config.budget.enforce = false;
    CHECK(within_memory(make_plan(r)));
    CHECK_FALSE(make_plan(r).fits());  // and the plan says so all the same
  }
  PlanRequest both = request();
  both.machine.gpu_memory = 8 * GiB;
  both.machine.host.memory = 1 * GiB;
  const std::string text = within_memory(make_plan(both)).error().text();
  CHECK(has(text, "plan: RAM: "));
  CHECK(has(text, "plan: VRAM: "));
  PlanRequest elsewhere = request();  // the disk, or too few images, are not the plan's to refuse
  elsewhere.disk_free = 100 * MiB;
  CHECK_FALSE(make_plan(elsewhere).fits());
  CHECK(within_memory(make_plan(elsewhere)));
}

TEST_CASE("plan: what cannot be run is told") {
  PlanRequest r = request("cpu");
  r.config.train.batch = 8;
  r.config.model.precision = "fp16";
  CHECK(has(make_plan(r).problems.at(0).text(), "fp16 needs a GPU"));
  r = request();
  r.devices = 4;
  CHECK(has(make_plan(r).problems.at(0).text(), "box has 1 GPU"));
  r = request();
  r.data.train_images = 100;
  CHECK_FALSE(make_plan(r).fits());  // less than a step
  r = request();
  r.disk_free = 100 * MiB;
  CHECK(has(make_plan(r).problems.at(0).text(), "disk"));
  r.disk_free = 100 * GiB;
  CHECK(make_plan(r).fits());
}

TEST_CASE("plan: one checkpoint's bytes, and how many there are") {
  PlanRequest r = request();
  Plan plan = make_plan(r);
  const NetworkBytes n = network_bytes("resnet50", 1000, "fp16");
  CHECK(plan.checkpoint == 2 * n.parameters + n.buffers);
  CHECK(plan.checkpoint_files == 8);
  r.config.optim.ema = 0.9;
  r.config.checkpoint.keep = 1;
  plan = make_plan(r);
  CHECK(plan.checkpoint == 3 * n.parameters + 2 * n.buffers);
  CHECK(plan.checkpoint_files == 4);
}
