// The commands around a training run: schedule, plan, eval, lr-find, doctor, bench feed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// What stdout holds must be one JSON object and nothing else.
json object(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  REQUIRE(json::accept(ended.out));
  return json::parse(ended.out);
}

const std::vector<std::string> long_run = {
    "schedule", "tiny.toml",        "--set", "data.train=nowhere",      "--set", "model.device=cuda",
    "--set",    "train.epochs=600", "--set", "train.batch=128",         "--set", "train.accumulate=2",
    "--set",    "optim.lr=0.5",     "--set", "schedule.warmup_epochs=5"};

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("schedule: by epochs, without data and for a GPU that is not there") {
  const Workshop shop;
  const json told = object(shop.run(long_run + std::vector<std::string>{"--json", "-o", "lr.svg"}));
  REQUIRE(told["epochs"].size() == 600);
  CHECK(told["epochs"][0] == json{{"epoch", 0}, {"lr", 0.005}});
  CHECK(told["epochs"][4]["lr"] == 0.5);
  CHECK(told["epochs"][599] == json{{"epoch", 599}, {"lr", 0.0}});
  CHECK(told["peak"] == 0.5);
  CHECK(told["total_batch"] == 256);
  CHECK(told["steps_per_epoch"].is_null());
  CHECK_FALSE(told.contains("steps"));
  const std::string svg = read_text(shop.folder / "lr.svg");
  CHECK(has(svg, "tiny.toml"));
  CHECK(has(svg, "<path"));
}

TEST_CASE("bench feed: a paced consumer, slow storage and cached batches; no device, no validation images") {
  const Workshop shop;
  fs::remove_all(shop.folder / "val");
  const std::vector<std::string> feed = {
      "bench",     "feed", "tiny.toml", "--json", "--set", "model.device=cuda",
      "--seconds", "0.5",  "--warmup",  "0.2",    "--set", "train.batch=32",
      "--rate",    "200"};  // a batch is more than there are images
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--latency", "5"}, {"--bandwidth", "50"}, {"--headspace"}}) {
    const json told = object(shop.run(feed + more));
    for (const char* key :
         {"images_per_s", "starvation", "first_batch_s", "peak_ledger_bytes", "peak_rss_bytes", "diagnosis"})
      CHECK(told.contains(key));
    CHECK(told["images_per_s"] > 0);
    CHECK(told["starvation"] >= 0);
    CHECK(told["starvation"] <= 1.001);
    CHECK(told["peak_ledger_bytes"] <= 64 << 20);
    CHECK(told["peak_rss_bytes"] > told["peak_ledger_bytes"]);
    CHECK(told["diagnosis"].get<std::string>().starts_with("bound by "));
  }
  CHECK(has(shop.run({"bench", "feed", "tiny.toml", "--set", "data.train=nowhere"}).err, "nowhere"));
  CHECK(shop.run(feed + std::vector<std::string>{"--rate", "-1"}).code == 2);
}

TEST_CASE("eval: the same figures as the run recorded; needs no training images") {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.max_steps=1"}).code == 0);
  json val;
  for (const json& line : shop.metrics("a"))
    if (line["event"] == "val") val = line;
  fs::rename(shop.folder / "train", shop.folder / "gone");
  const json told =
      object(shop.run({"eval", "tiny.toml", "--json", "--checkpoint", "runs/a/checkpoints/last.ckpt"}));
  for (const char* name : {"val/loss", "val/acc1", "val/acc5"}) {
    CAPTURE(name);
    CHECK(told[name] == val[name]);
  }
  CHECK(told["images"] == 24);
  CHECK(told["left_out"] == 0);
}

TEST_CASE("doctor: a sound configuration passes after one real step, and leaves nothing behind") {
  const Workshop shop;
  const json told = object(shop.run({"doctor", "tiny.toml", "--json"}));
  CHECK(told["ok"] == true);
  std::vector<std::string> names;
  for (const json& check : told["checks"]) names.push_back(check["name"]);
  for (const char* name :
       {"build", "CPUs", "memory", "JPEG", "rendezvous", "exchange", "configuration", "device", "data set",
        "RAM budget", "storage", "images", "one step", "feed", "disk"})
    CHECK_MESSAGE(std::ranges::count(names, name) == 1, name);
  for (const json& check : told["checks"]) {
    if (check["name"] == "images") CHECK(check["figures"]["looked_at"] == 48);
    if (check["name"] == "storage") CHECK(check["figures"]["images_per_s"] > 0);
  }
  CHECK_FALSE(fs::exists(shop.folder / "runs"));

  const Ended machine_only = shop.run({"doctor"});
  CHECK(machine_only.code == 0);
  CHECK(has(machine_only.out, "ok       build"));
}

TEST_CASE("doctor: what is wrong is a line with what to do, and fails") {
  const Workshop shop;
  const auto fails = [&](const std::vector<std::string>& words, const std::string& line) {
    const Ended ended = shop.run(std::vector<std::string>{"doctor", "tiny.toml"} + words);
    CAPTURE(ended.out);
    CHECK(ended.code == 1);
    CHECK(has(ended.out, "fail     "));
    CHECK(has(ended.out, line));
    CHECK(has(ended.out, "-> "));
  };
  fails({"--set", "train.batches=3"}, "train.batches");
  fails({"--set", "data.train=nowhere"}, "nowhere");
  fails({"--set", "budget.ram=1MiB"}, "budget.ram");
  fails({"--set", "log.dir=tiny.toml"}, "is not a folder");
  write_file(shop.folder / "val/ant/broken.JPEG", std::string("not an image"));
  fails({}, "val/ant/broken.JPEG: not a JPEG");
}

TEST_SUITE("long") {
  TEST_CASE("schedule: a table of the whole run; by steps it must know how many") {
    const Workshop shop;
    const Ended table = shop.run(long_run);
    CHECK(table.code == 0);
    CHECK(std::ranges::count(table.out, '\n') == 600 + 3);
    CHECK(has(table.out, "not known: nowhere is not there"));
    CHECK(has(table.out, "    0         0.005\n"));
    const Ended by_step = shop.run(long_run + std::vector<std::string>{"--set", "schedule.interval=step"});
    CHECK(by_step.code == 2);
    CHECK(has(by_step.err, "--steps-per-epoch"));
    CHECK(shop.run(long_run + std::vector<std::string>{"-o", "lr.png"}).code == 2);
  }

  TEST_CASE("schedule: a long run by steps is thinned, and still tells where each epoch begins and ends") {
    const Workshop shop;
    const json told = object(shop.run({"schedule", "tiny.toml", "--json", "--steps-per-epoch", "5004",
                                       "--set", "schedule.interval=step", "--set", "train.epochs=90"}));
    CHECK(told["steps_per_epoch"] == 5004);
    CHECK(told["steps"].size() <= 10000);
    CHECK(told["steps"].size() > 5000);
    CHECK(told["steps"][0]["step"] == 0);
    REQUIRE(told["epochs"].size() == 90);
    CHECK(told["epochs"][89]["last_lr"] == 0.0);
    CHECK(told["epochs"][88]["last_lr"] > told["epochs"][89]["lr"]);
  }

  TEST_CASE("schedule and eval: rates, averaged and exported weights, bad images, other networks") {
    const Workshop shop;
    const std::vector<std::string> sets = {"--set", "schedule.interval=step", "--set", "optim.ema=0.5"};
    const auto command = [&](const std::vector<std::string>& words) { return shop.run(words + sets); };
    REQUIRE(command({"train", "tiny.toml", "--set", "log.name=a"}).code == 0);
    std::vector<double> rates;
    json val;
    for (const json& line : shop.metrics("a")) {
      if (line["event"] == "train") rates.push_back(line["train/lr"]);
      if (line["event"] == "val") val = line;
    }
    const json schedule = object(command({"schedule", "tiny.toml", "--json"}));
    REQUIRE(schedule["steps"].size() == rates.size());
    CHECK(rates.size() == 8);
    for (std::size_t i = 0; i < rates.size(); ++i) CHECK(schedule["steps"][i]["lr"] == rates[i]);
    CHECK(schedule["steps_per_epoch"] == 4);

    const std::string checkpoint = "runs/a/checkpoints/last.ckpt";
    const json trained = object(command({"eval", "tiny.toml", "--json", "--checkpoint", checkpoint}));
    const json averaged =
        object(command({"eval", "tiny.toml", "--json", "--ema", "--checkpoint", checkpoint}));
    for (const char* name : {"loss", "acc1", "acc5"}) {
      CAPTURE(name);
      CHECK(trained[std::string("val/") + name] == val[std::string("val/") + name]);
      CHECK(averaged[std::string("val/") + name] == val[std::string("val/ema_") + name]);
    }
    CHECK(trained["val/loss"] != averaged["val/loss"]);
    CHECK(trained["images"] == 24);
    CHECK(trained["left_out"] == 0);

    // The same weights by way of Python's format, an image that cannot be used, and a table.
    REQUIRE(shop.run({"export", checkpoint, "-o", "w.safetensors"}).code == 0);
    CHECK(object(command({"eval", "tiny.toml", "--json", "--checkpoint", "w.safetensors"}))["val/loss"] ==
          trained["val/loss"]);
    write_file(shop.folder / "val/ant/broken.JPEG", std::string("not an image"));
    const Ended strict = command({"eval", "tiny.toml", "--checkpoint", checkpoint});
    CHECK(strict.code == 1);
    CHECK(has(strict.err, "data.max_bad"));
    CHECK(strict.out.empty());
    const Ended lenient =
        command({"eval", "tiny.toml", "--checkpoint", checkpoint, "--set", "data.max_bad=0.1"});
    CHECK(lenient.code == 0);
    CHECK(has(lenient.err, "broken.JPEG"));
    CHECK(has(lenient.out, "24 images, 1 left out"));

    const Ended other =
        command({"eval", "tiny.toml", "--checkpoint", checkpoint, "--set", "model.arch=resnet34"});
    CHECK(other.code != 0);
    CHECK(has(other.err, "last.ckpt"));
    CHECK(command({"eval", "tiny.toml", "--checkpoint", "nowhere.ckpt"}).code == 2);
  }

  TEST_CASE("lr-find: suggests a rate for optim.lr, draws it, and leaves nothing else behind") {
    const Workshop shop;
    const Ended ended = shop.run({"lr-find", "tiny.toml", "--json", "--steps", "20", "--low", "1e-4",
                                  "--high", "1000", "-o", "lr.svg", "--set", "train.accumulate=2"});
    const json told = object(ended);
    REQUIRE(told["points"].size() > 10);
    CHECK(told["points"][0]["lr"] == doctest::Approx(1e-4));
    CHECK(told["points"][1]["lr"].get<double>() / told["points"][0]["lr"].get<double>() ==
          doctest::Approx(std::pow(1e7, 1.0 / 19)));
    CHECK(told["total_batch"] == 10);
    if (!told["suggestion"].is_null()) {
      CHECK(told["suggestion"] > 1e-4);
      CHECK(told["suggestion"] < 1000);
    } else {
      CHECK(told.contains("why_none"));
    }
    CHECK(has(read_text(shop.folder / "lr.svg"), "smoothed"));
    CHECK_FALSE(fs::exists(shop.runs()));
    CHECK(shop.run({"lr-find", "tiny.toml", "--low", "1", "--high", "0.1"}).code == 2);
  }
}

TEST_CASE("plan: a table, or one JSON object; exit 2 if it does not fit") {
  const Workshop shop;
  const Ended here = shop.run({"plan", "tiny.toml"});
  INFO(here.err);
  CHECK(here.code == 0);
  CHECK(has(here.out, "24 training and 24 validation images, 2 classes (counted in the folders)"));
  CHECK(has(here.out, "\nfits\n"));
  CHECK(here.err.empty());

  // A preset for a GPU, with neither the data nor the GPU.
  write_file(
      shop.folder / "box.toml",
      "name = \"box\"\ncpus = 8\nmemory = \"32GiB\"\ngpus = 1\ngpu_memory = \"15GiB\"\ngpu_name = \"x\"\n");
  const std::vector<std::string> away{"plan",
                                      "tiny.toml",
                                      "--machine",
                                      "box.toml",
                                      "--json",
                                      "--set",
                                      "data.train=nowhere",
                                      "--set",
                                      "model.device=cuda",
                                      "--set",
                                      "model.arch=resnet50",
                                      "--set",
                                      "budget.ram=auto"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), away.begin(), away.end());
    return shop.run(more);
  };
  const Ended fits = with({"--rate", "100"});
  INFO(fits.err);
  REQUIRE(fits.code == 0);
  const json told = json::parse(fits.out);
  CHECK(told["fits"] == true);
  CHECK(told["data"]["train_images"] == 1'281'167);
  CHECK(told["vram"]["available_bytes"] == 15ull << 30);
  CHECK(told["time"]["run_seconds"] > 0);

  const Ended not_fits =
      with({"--set", "train.batch=512", "--set", "data.image_size=224", "--set", "data.val_resize=256"});
  CHECK(not_fits.code == 2);
  CHECK(json::parse(not_fits.out)["fits"] == false);
  CHECK(has(not_fits.err, "VRAM: does not fit"));
  CHECK(shop.run({"plan", "tiny.toml", "--machine", "nowhere.toml"}).code == 2);
  CHECK(with({"--devices", "0"}).code == 2);
}
