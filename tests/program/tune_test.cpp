// `sluice tune`: trials as processes of their own, a table whatever happens, and a configuration that works.
#include <doctest/doctest.h>

#include <csignal>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("tune: at least the configuration itself is tried, and the written option trains") {
  const Workshop shop;
  const Ended ended = shop.run(
      {"tune", "tiny.toml", "--minutes", "0.05", "--json", "-o", "tuned.toml", "--choose", "aggressive"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  REQUIRE(json::accept(ended.out));
  const json told = json::parse(ended.out);
  REQUIRE(told["rows"].size() >= 1);
  CHECK(told["rows"][0]["set"].empty());
  CHECK(told["rows"][0]["images_per_s"] > 0);
  CHECK(told["rows"][0]["ram"] > (50 << 20));
  CHECK(told["rows"][0]["data_wait"] >= 0);
  CHECK(told["rows"][0]["data_wait"] <= 1);
  CHECK(told["chosen"] == "aggressive");
  for (const char* name : {"conservative", "balanced", "aggressive"}) CHECK(told["options"].contains(name));
  CHECK_FALSE(fs::exists(shop.runs()));
  const std::string written = read_text(shop.folder / "tuned.toml");
  CHECK(has(written, "aggressive option"));
  CHECK(has(written, "\nlr = 0.1\nbase_batch = 256\n"));
  CHECK(shop.run({"train", "tuned.toml", "--set", "train.max_steps=1"}).code == 0);
}

TEST_CASE("tune: refuses what no trial could help") {
  const Workshop shop;
  const Ended small = shop.run({"tune", "tiny.toml", "--set", "budget.ram=1MiB"});
  CHECK(small.code == 2);
  CHECK(has(small.err, "budget.ram"));
  CHECK(small.out.empty());
  const Ended itself = shop.run({"tune", "tiny.toml", "-o", "tiny.toml"});
  CHECK(itself.code == 2);
  CHECK(has(itself.err, "is the configuration itself"));
  CHECK(shop.run({"tune", "tiny.toml", "--choose", "best"}).code == 2);
}

TEST_CASE("tune: interrupted, it prints the table so far") {
  const Workshop shop;
  const Ended ended =
      shop.run({"tune", "tiny.toml", "--minutes", "1"}, send_signal(SIGINT, "as configured: "));
  CHECK(ended.code == 130);
  CHECK(has(ended.out, "setting"));
  CHECK(has(ended.out, "as configured"));
  CHECK(has(ended.out, "balanced"));
}

TEST_SUITE("long") {
  TEST_CASE("tune: a trial that fails is a row, and the search goes on") {
    const Workshop shop;
    // 24 images: batches of 12 and 24 work, 48 do not.
    const Ended ended =
        shop.run({"tune", "tiny.toml", "--minutes", "0.9", "--json", "--set", "train.batch=24"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const json told = json::parse(ended.out);
    bool failed = false, after = false;
    for (const json& row : told["rows"]) {
      if (failed && row.contains("images_per_s")) after = true;
      if (has(row["verdict"], "failed: ")) failed = true;
    }
    CHECK(failed);
    CHECK(after);
  }
}
