#include "model/ranks/reduce_trace.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"

using namespace sluice;
using Kind = ReduceTrace::Event::Kind;

TEST_CASE("reduce trace: sums have a beginning and a length, gradients a name") {
  const test::TemporaryFolder folder;
  ReduceTrace trace;
  trace.name_parameters({"conv", "fc"});
  trace.add(Kind::gradient, 1);
  trace.add(Kind::began, 0);
  trace.add(Kind::gradient, 0);
  trace.add(Kind::ended, 0);
  REQUIRE(trace.write(folder / "trace.json", 3));
  std::ifstream file(folder / "trace.json");
  std::vector<std::string> names;
  nlohmann::json sum;
  const auto all = nlohmann::json::parse(file);
  for (const auto& event : all.at("traceEvents")) {
    CHECK(event.at("pid") == 3);
    if (event.at("ph") == "i") names.push_back(event.at("name"));
    if (event.at("ph") == "X") sum = event;
  }
  CHECK(names == std::vector<std::string>{"fc", "conv"});
  REQUIRE(sum.is_object());
  CHECK(sum.at("dur").get<double>() >= 0);
  CHECK(sum.at("tid") == 1);
  CHECK(trace.take().size() == 4);
  CHECK(trace.take().empty());
  CHECK(!trace.write(folder / "missing/trace.json", 0));
}

TEST_CASE("reduce trace: one that cannot be written says why, and leaves the one before whole") {
  const test::TemporaryFolder folder;
  ReduceTrace trace;
  REQUIRE(trace.write(folder / "trace.json", 0));
  std::filesystem::create_hard_link(folder / "trace.json", folder / "former");
  const std::string before = test::read_text(folder / "former");
  trace.name_parameters({"conv"});
  trace.add(Kind::gradient, 0);
  REQUIRE(trace.write(folder / "trace.json", 0));
  CHECK(test::read_text(folder / "former") == before);  // replaced, not written over
  CHECK(test::read_text(folder / "trace.json") != before);

  const Status nowhere = trace.write(folder / "missing/trace.json", 0);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().text().find("No such file") != std::string::npos);
  const Status full = trace.write("/dev/full", 0);
  REQUIRE_FALSE(full);
  CHECK(full.error().text().find("/dev/full") != std::string::npos);
  CHECK(full.error().text().find("No space left") != std::string::npos);
}
