#include "run/config/same.hpp"

#include <doctest/doctest.h>

#include "run/config/keys.hpp"

using namespace sluice;

TEST_CASE("ranks may differ in what concerns their host alone") {
  Config a, b;
  b.data.train = "/scratch/train";
  b.budget.ram = Size{1u << 30};
  b.pipeline.decode_threads = 3;
  b.log.dir = "elsewhere";
  b.train.threads = 5;
  CHECK(same_training(to_toml(b), to_toml(a), "rank 1"));
}

TEST_CASE("ranks that would train differently are refused, with the key") {
  const Config a;
  const auto refused = [&](const Config& b) {
    const Status same = same_training(to_toml(b), to_toml(a), "rank 3");
    REQUIRE_FALSE(same);
    return same.error().text();
  };
  Config b;
  b.train.epochs = 7;
  CHECK(refused(b) ==
        "ranks: rank 3: train.epochs is 7, and 90 on rank 0; give all ranks the same configuration");
  b = a;
  b.data.subset_seed = 7;
  CHECK(refused(b).find("data.subset_seed is 7") != std::string::npos);
  b = a;
  b.log.every = 3;
  CHECK(refused(b).find("log.every is 3") != std::string::npos);
  b = a;
  b.checkpoint.every_steps = 5;
  CHECK(refused(b).find("checkpoint.every_steps is 5") != std::string::npos);
}

TEST_CASE("ranks may differ in the keys that the table says, and in no other") {
  Config a;
  std::string local;
  for (const Key& key : config_keys()) {
    Config b;
    const ValueRef value = key.value(b);
    if (auto* v = std::get_if<bool*>(&value)) **v = !**v;
    if (auto* v = std::get_if<std::int64_t*>(&value)) **v += 1;
    if (auto* v = std::get_if<double*>(&value)) **v = **v == 0 ? 0.5 : **v * 0.75;
    if (auto* v = std::get_if<Range*>(&value)) (**v)[0] *= 0.75;
    if (auto* v = std::get_if<Size*>(&value)) (**v).bytes += 1;
    if (auto* v = std::get_if<SizeOrAuto*>(&value)) **v = Size{3u << 29};
    if (auto* v = std::get_if<Count*>(&value)) **v = 5;
    if (auto* v = std::get_if<std::filesystem::path*>(&value)) **v = "elsewhere";
    if (auto* v = std::get_if<std::vector<std::string>*>(&value)) **v = {"x"};
    if (auto* v = std::get_if<std::string*>(&value)) **v = key.choices.empty() ? "other" : key.choices.back();
    if (key.choices.size() == 1) continue;  // nothing else to be
    if (value_text(key.value(b)) == value_text(key.value(a)))
      **std::get_if<std::string*>(&value) = key.choices.front();
    const Status same = same_training(to_toml(b), to_toml(a), "rank 1");
    CAPTURE(key.name);
    CHECK(bool(same) == key.local);
    if (!same) CHECK(same.error().cause.starts_with(std::string(key.name) + " is "));
    if (key.local) local += std::string(key.name) + " ";
  }
  CHECK(local ==
        "data.train data.val data.synth budget.ram budget.enforce pipeline.read_threads pipeline.read_ahead "
        "pipeline.decode_threads pipeline.prefetch train.threads log.dir log.name log.tensorboard ");
}

TEST_CASE("a rank 0 of another version, or one that says nonsense, is told apart by key") {
  const std::string own = to_toml(Config());
  const auto told = [&](const std::string& first) {
    const Status same = same_training(own, first, "rank 1");
    return same ? "" : same.error().cause;
  };
  std::string other = own;
  other.replace(other.find("batch = 256"), 11, "batsch = 3");
  CHECK(told(other) == "train.batch is 256, and not there on rank 0");
  other = own;
  other.replace(other.find("batch = 256"), 11, "batch = 0x100 # the same");
  CHECK(told(other).empty());
  other = own;
  other.replace(other.find("batch = 256"), 11, "batch = \"many\"");
  CHECK(told(other) == "train.batch must be a whole number, is a string (\"many\") on rank 0");
  CHECK(told("[train").ends_with(" on rank 0"));
  CHECK(told("train = 3") != "");
}
