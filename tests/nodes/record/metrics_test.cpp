#include "nodes/record/metrics.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/line.hpp"
#include "base/random.hpp"

using namespace sluice;

namespace {

std::string scratch_file() {
  const auto path = std::filesystem::temp_directory_path() / ("sluice-lines-" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  return path.string();
}

std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("keys come in a fixed order, whatever order they are given in") {
  const Record record{
      .event = "train",
      .epoch = 2,
      .step = 40,
      .values = {{"zeta", 1}, {"data_wait", 0.25}, {"train/lr", 0.1}, {"alpha", 2}, {"train/loss", 1.5}},
      .texts = {{"why", "a \"b\"\n"}}};
  CHECK(json_line(record) ==
        "{\"event\":\"train\",\"epoch\":2,\"step\":40,\"train/loss\":1.5,\"train/lr\":0.1,\"data_wait\":0.25,"
        "\"zeta\":1.0,\"alpha\":2.0,\"why\":\"a \\\"b\\\"\\n\"}");
}

TEST_CASE("doubles read back bit for bit") {
  std::vector<double> values{0.0,
                             -0.0,
                             1.0,
                             0.1,
                             1.0 / 3,
                             282,
                             1e22,
                             5e-324,
                             std::numeric_limits<double>::max(),
                             -1e-7,
                             9007199254740993.0};
  Random random(1, 0, 0, Purpose::synth);
  for (int i = 0; i < 1000; ++i) {
    const double value = std::bit_cast<double>(std::uint64_t{random.bits()} << 32 | random.bits());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    const auto back = nlohmann::json::parse(json_line({.event = "train", .values = {{"x", value}}}));
    CHECK(std::bit_cast<std::uint64_t>(back["x"].get<double>()) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("what is not finite is null and named") {
  const auto back = nlohmann::json::parse(json_line(
      {.event = "train", .values = {{"train/lr", 0.1}, {"train/loss", NAN}, {"val/loss", -INFINITY}}}));
  CHECK(back["train/loss"].is_null());
  CHECK(back["train/lr"] == 0.1);
  CHECK(back["non_finite"] == nlohmann::json{"train/loss", "val/loss"});
  CHECK_FALSE(nlohmann::json::parse(json_line({.event = "end"})).contains("non_finite"));
}

TEST_CASE("text that is not UTF-8 still makes a line that can be read") {
  CHECK(nlohmann::json::accept(json_line({.event = "end", .texts = {{"why", "\xff\xfe"}}})));
}

TEST_CASE("lines are appended, and a torn one is cut off first") {
  const std::string path = scratch_file();
  const std::string rest(10000, 'x');
  std::ofstream(path) << "one\n" << rest;
  {
    auto sink = append_to(path);
    REQUIRE(sink);
    CHECK((*sink)("two"));
    CHECK(content(path) == "one\ntwo\n");  // before it is closed
  }
  auto again = append_to(path);
  REQUIRE(again);
  CHECK((*again)(""));
  CHECK(content(path) == "one\ntwo\n\n");
  std::filesystem::remove(path);
}

TEST_CASE("a full disk and a missing folder are reported by name") {
  auto full = append_to("/dev/full");
  REQUIRE(full);
  const Status status = (*full)("lost");
  REQUIRE_FALSE(status);
  CHECK(status.error().text() ==
        "log: /dev/full: cannot be written: No space left on device; free some space on that disk");
  const auto none = append_to("/no/such/folder/metrics.jsonl");
  REQUIRE_FALSE(none);
  CHECK(none.error().cause == "cannot be opened: No such file or directory");
}
