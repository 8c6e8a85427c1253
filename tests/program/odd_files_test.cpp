// Files that no camera writes, in a real training: the same run gives the same records, to the last digit.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/program/workshop.hpp"
#include "tests/support/odd_jpegs.hpp"

using namespace sluice::test;

namespace {

// metrics.jsonl without what depends on the clock, and quarantine.jsonl as it is.
std::vector<std::string> records(const Workshop& shop, const std::string& run) {
  std::vector<std::string> all;
  for (nlohmann::json& record : shop.metrics(run)) {
    forget_clock(record);
    all.push_back(record.dump());
  }
  all.push_back(read_text(shop.runs() / run / "quarantine.jsonl"));
  return all;
}

// Every `step`-th crafted file and `mutants` mutated ones; every fourth of them in validation.
void train_on_odd_files(std::size_t step, std::uint64_t mutants, const std::vector<std::string>& threads) {
  const Workshop shop;
  const std::vector<Bytes> sound = sound_jpegs();
  std::vector<Bytes> odd;
  const std::vector<OddJpeg> crafted = crafted_jpegs();
  for (std::size_t i = 0; i < crafted.size(); i += step) odd.push_back(crafted[i].bytes);
  for (std::uint64_t i = 0; i < mutants; ++i) odd.push_back(mutant(sound, 51, i));
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const auto root = shop.folder.path() / (i % 4 == 3 ? "val" : "train");
    write_file(root / "bee" / (std::to_string(1000 + i) + ".JPEG"), odd[i]);
    write_file(root / "ant" / (std::to_string(1000 + i) + ".JPEG"), sound[i % sound.size()]);
  }
  std::vector<std::string> first;
  int alike = 0;
  for (std::size_t run = 0; run < threads.size(); ++run) {
    const std::string name = "run" + std::to_string(run);
    CAPTURE(name);
    const Ended ended = shop.train({"--set", "log.name=" + name, "--set", "data.max_bad=1", "--set",
                                    "budget.ram=128MiB", "--set", "train.epochs=1", "--set", "train.batch=32",
                                    "--set", "pipeline.decode_threads=" + threads[run]});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    std::vector<std::string> now = records(shop, name);
    REQUIRE(now.size() > 2);
    if (run == 0) first = now;
    CHECK((now == first));
    alike += now == first;
  }
  const auto bad = std::count(first.back().begin(), first.back().end(), '\n');
  MESSAGE(odd.size() << " odd files: " << first.size() - 1 << " records, " << bad << " bad images; " << alike
                     << " of " << threads.size() << " runs alike");
  CHECK(static_cast<std::size_t>(bad) > odd.size() / 3);
}

}  // namespace

TEST_CASE("train: odd files give the same records and the same quarantine twice") {
  train_on_odd_files(4, 30, {"1", "8"});
}

TEST_SUITE("long") {
  TEST_CASE("train: all crafted and 2000 mutated files give the same records at 1, 2 and 8 threads") {
    train_on_odd_files(1, 2000, {"1", "1", "2", "2", "8", "8"});
  }
}
