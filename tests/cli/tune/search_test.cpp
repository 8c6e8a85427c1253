#include "cli/tune/search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace sluice;

namespace {

constexpr std::size_t MiB = 1 << 20;

// A machine that answers at once: images/s, data wait and memory as functions of the setting.
struct Model {
  std::function<double(const TuneSetting&)> rate = [](const TuneSetting&) { return 100.0; };
  std::function<double(const TuneSetting&)> wait = [](const TuneSetting&) { return 0.0; };
  std::function<bool(const TuneSetting&)> works = [](const TuneSetting&) { return true; };
  std::string bound_by = "step";
};

TuneSearch searched(const TuneStart& start, const Model& model, int most = 40) {
  TuneSearch search(start);
  for (int i = 0; i < most; ++i) {
    const auto setting = search.next(1e6, 1);
    if (!setting) return search;
    for (const TrialRow& row : search.rows()) CHECK_FALSE(row.setting == *setting);  // nothing twice
    TrialRow row{*setting, std::nullopt, "", 1};
    if (model.works(*setting))
      row.figures =
          TrialFigures{model.rate(*setting), model.wait(*setting),
                       static_cast<std::size_t>(setting->batch + setting->prefetch) * MiB, 0, model.bound_by};
    else
      row.failure = "killed: out of memory?";
    search.add(row);
  }
  FAIL("the search does not end");
  return search;
}

bool tried(const TuneSearch& search, const std::function<bool(const TuneSetting&)>& like) {
  return std::ranges::any_of(search.rows(), [&](const TrialRow& row) { return like(row.setting); });
}

TuneStart on_cpu(std::int64_t batch, std::int64_t cpus) {
  TuneStart start;
  start.as_configured.batch = batch;
  start.as_configured.torch_threads = cpus;
  start.cpus = cpus;
  return start;
}

const TuneSetting& fastest(const TuneSearch& search) {
  return search.rows()[choose_options(search.rows())->aggressive].setting;
}

}  // namespace

TEST_CASE("tune search: starts as configured, and what is the same needs no word") {
  const TuneStart start = on_cpu(32, 2);
  const TuneSearch search(start);
  CHECK(search.next(60, 5) == start.as_configured);
  CHECK(changes(start.as_configured, start.as_configured).empty());
  TuneSetting other = start.as_configured;
  other.batch = 64;
  other.prefetch = 8;
  CHECK(changes(start.as_configured, other) ==
        std::vector<std::string>{"train.batch=64", "pipeline.prefetch=8"});
}

TEST_CASE("tune search: doubles the batch as long as that pays, and tries half of it once") {
  Model model;
  model.rate = [](const TuneSetting& s) { return s.batch <= 128 ? static_cast<double>(s.batch) : 128.0; };
  const TuneSearch search = searched(on_cpu(32, 1), model);
  CHECK(fastest(search).batch == 128);
  CHECK(tried(search, [](const TuneSetting& s) { return s.batch == 256; }));
  CHECK_FALSE(tried(search, [](const TuneSetting& s) { return s.batch == 512; }));
  CHECK(tried(search, [](const TuneSetting& s) { return s.batch == 16; }));
}

TEST_CASE("tune search: what other threads have brought does not count for the batch") {
  Model model;
  model.rate = [](const TuneSetting& s) { return s.torch_threads == 1 ? 30.0 : 5.0; };
  const TuneSearch search = searched(on_cpu(32, 2), model);
  CHECK(tried(search, [](const TuneSetting& s) { return s.batch == 64; }));
  CHECK_FALSE(tried(search, [](const TuneSetting& s) { return s.batch == 128; }));
}

TEST_CASE("tune search: a trial that fails ends its direction, not the search") {
  Model model;
  model.rate = [](const TuneSetting& s) { return static_cast<double>(s.batch); };
  model.works = [](const TuneSetting& s) { return s.batch <= 64; };
  const TuneSearch search = searched(on_cpu(32, 2), model);
  CHECK(fastest(search).batch == 64);
  CHECK_FALSE(tried(search, [](const TuneSetting& s) { return s.batch > 128; }));
  CHECK(tried(search, [](const TuneSetting& s) { return s.torch_threads == 1; }));
}

TEST_CASE("tune search: where the configuration itself fails, smaller batches are tried until one works") {
  Model model;
  model.works = [](const TuneSetting& s) { return s.batch <= 8; };
  const TuneSearch search = searched(on_cpu(64, 1), model);
  CHECK(fastest(search).batch == 8);
  model.works = [](const TuneSetting&) { return false; };
  const TuneSearch none = searched(on_cpu(64, 1), model);
  CHECK(none.rows().size() == 7);  // 64, 32, ... 1
  CHECK_FALSE(choose_options(none.rows()));
}

TEST_CASE("tune search: keeps the total batch where asked") {
  TuneStart start = on_cpu(32, 1);
  start.as_configured.accumulate = 4;
  start.keep_total = true;
  Model model;
  model.rate = [](const TuneSetting& s) { return static_cast<double>(s.batch); };
  const TuneSearch search = searched(start, model);
  for (const TrialRow& row : search.rows()) CHECK(row.setting.total_batch() == 128);
  CHECK(fastest(search).batch == 128);
  CHECK(fastest(search).accumulate == 1);
  CHECK(tried(search, [](const TuneSetting& s) { return s.batch == 16 && s.accumulate == 8; }));
}

TEST_CASE("tune search: a fed device asks for no more readers, a starved one does") {
  Model model;
  model.bound_by = "read";
  CHECK_FALSE(
      tried(searched(on_cpu(32, 4), model), [](const TuneSetting& s) { return s.read_threads > 16; }));
  // Storage of 80 ms: as many images/s as there are readers for.
  model.rate = [](const TuneSetting& s) {
    return std::min(static_cast<double>(s.read_threads) / 0.08, 2000.0);
  };
  model.wait = [&](const TuneSetting& s) { return 1 - model.rate(s) / 2000; };
  const TuneSearch search = searched(on_cpu(32, 4), model);
  CHECK(fastest(search).read_threads == 256);
  CHECK(fastest(search).read_ahead >= 512);
}

TEST_CASE("tune search: on a GPU that waits for decoding, more threads decode") {
  TuneStart start = on_cpu(64, 16);
  start.gpu = true;
  start.as_configured.torch_threads = 1;
  start.as_configured.decode_threads = 4;
  Model model;
  model.bound_by = "decode";
  model.rate = [](const TuneSetting& s) {
    return 100.0 * static_cast<double>(std::min<std::int64_t>(s.decode_threads, 16));
  };
  model.wait = [](const TuneSetting& s) { return s.decode_threads < 16 ? 0.3 : 0.0; };
  const TuneSearch search = searched(start, model);
  CHECK(fastest(search).decode_threads == 16);
  CHECK_FALSE(tried(search, [](const TuneSetting& s) { return s.read_threads > 16; }));
}

TEST_CASE("tune search: ends when the time left is less than a trial takes") {
  TuneSearch search(on_cpu(32, 2));
  CHECK(search.next(0, 5));  // one trial there must be
  search.add({search.next(0, 5).value(), TrialFigures{100, 0, MiB, 0, "step"}, "", 20});
  CHECK_FALSE(search.next(19, 5));
  CHECK(search.next(21, 5));
}

TEST_CASE("tune options: fastest, nearly as fast with least memory, not much slower with least memory") {
  const auto row = [](double rate, std::size_t ram, std::size_t vram = 0) {
    return TrialRow{{}, TrialFigures{rate, 0, ram, vram, "step"}, "", 1};
  };
  std::vector<TrialRow> rows = {row(100, 400), row(98, 300), row(91, 200), row(50, 100)};
  rows.insert(rows.begin(), TrialRow{{}, std::nullopt, "failed", 1});
  const auto options = choose_options(rows);
  REQUIRE(options);
  CHECK(option_row(*options, "aggressive") == 1);
  CHECK(option_row(*options, "balanced") == 2);
  CHECK(option_row(*options, "conservative") == 3);
  const auto by_vram = choose_options({row(100, 100, 900), row(99, 200, 300)});
  CHECK(by_vram->balanced == 1);
}
