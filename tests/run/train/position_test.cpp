#include "run/train/position.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace sluice;
using nlohmann::json;

namespace {

// Every field differs from its default and from all others.
Position somewhere() {
  Position p;
  p.step = 7;
  p.validated = true;
  p.epoch = 1;
  p.records = 9;
  p.epoch_sums = {.loss = 1.0 / 3, .count = 40, .judged = 39, .correct1 = 11, .correct5 = 22, .batches = 8};
  p.since_record = {.loss = 1e-300, .count = 4, .judged = 3, .correct1 = 1, .correct5 = 2, .batches = 5};
  p.bad = {.in_phase = 6, .lines = 13};
  p.monitor = "val/loss";
  p.shape = {{"batch", 4}, {"arch", "resnet18"}};
  p.config = "[train]\nbatch = 4\n";
  p.best = {{-0.25, "epoch=1-val_loss=0.2500.ckpt"}, {-0.5, "epoch=0-val_loss=0.5000.ckpt"}};
  return p;
}

Result<Position> read(const json& state) {
  Snapshot snapshot;
  snapshot.state = state;
  snapshot.source = "runs/a/checkpoints/last.ckpt";
  return position_of(snapshot);
}

// Refused, and by name: of the file, and of the part.
void check_refused(const json& state, const std::string& part) {
  const Result<Position> position = read(state);
  REQUIRE_FALSE(position);
  CHECK(position.error().subject == "runs/a/checkpoints/last.ckpt");
  CHECK_MESSAGE(position.error().cause.find(part) != std::string::npos, position.error().cause);
  CHECK_FALSE(position.error().hint.empty());
  CHECK(position.error().cause.size() < 200);
}

bool same(const PhaseSums& a, const PhaseSums& b) {
  return a.loss == b.loss && a.count == b.count && a.judged == b.judged && a.correct1 == b.correct1 &&
         a.correct5 == b.correct5 && a.batches == b.batches && a.not_finite == b.not_finite;
}

}  // namespace

TEST_CASE("position: every field comes back from a checkpoint, bit for bit") {
  const Position before = somewhere();
  const json state = to_json(before);
  const Result<Position> p = read(json::parse(state.dump()));
  REQUIRE_MESSAGE(p, p.error().text());
  CHECK(p->step == before.step);
  CHECK(p->validated);
  CHECK(p->epoch == before.epoch);
  CHECK(p->records == before.records);
  CHECK(same(p->epoch_sums, before.epoch_sums));
  CHECK(same(p->since_record, before.since_record));
  CHECK(p->bad == before.bad);
  CHECK(p->monitor == before.monitor);
  CHECK(p->shape == before.shape);
  CHECK(p->config == before.config);
  REQUIRE(p->best.size() == 2);
  CHECK(p->best[1].score == -0.5);
  CHECK(p->best[1].file == "epoch=0-val_loss=0.5000.ckpt");
  CHECK(to_json(*p).dump() == state.dump());
  const RecordPosition at = p->among_records();
  CHECK(at.records == 9);
  CHECK(at.epoch == 1);
  CHECK(at.step == 7);
  CHECK(at.validated);
}

// What programs before this one have written is what this one writes.
TEST_CASE("position: the text in a checkpoint stays as it is") {
  CHECK(
      to_json(somewhere()).dump() ==
      R"({"bad":{"in_phase":6,"lines":13},"best":[{"file":"epoch=1-val_loss=0.2500.ckpt","score":-0.25},)"
      R"({"file":"epoch=0-val_loss=0.5000.ckpt","score":-0.5}],"config":"[train]\nbatch = 4\n","epoch":1,)"
      R"("epoch_sums":{"batches":8,"correct1":11,"correct5":22,"count":40,"judged":39,)"
      R"("loss":0.3333333333333333},"monitor":"val/loss","records":9,"shape":{"arch":"resnet18","batch":4},)"
      R"("since_record":{"batches":5,"correct1":1,"correct5":2,"count":4,"judged":3,"loss":1e-300},)"
      R"("step":7,"validated":true})");
}

TEST_CASE("position: a part that is missing or of another kind is refused by its name") {
  const json good = to_json(somewhere());
  REQUIRE(read(good));
  std::vector<json::json_pointer> parts;
  const json flat = good.flatten();
  for (const auto& [path, value] : flat.items()) parts.emplace_back(path);
  for (const char* path : {"/epoch_sums", "/since_record", "/bad", "/shape", "/best", "/best/0"})
    parts.emplace_back(path);
  for (const json::json_pointer& part : parts) {
    if (part.parent_pointer().to_string() == "/shape") continue;  // compared one by one with the run's
    CAPTURE(part.to_string());
    const json& value = good.at(part);
    const bool in_list = part.parent_pointer().to_string() == "/best";
    const std::string name = in_list ? "best" : part.back();
    if (!in_list) {
      json without = good;
      without.at(part.parent_pointer()).erase(part.back());
      check_refused(without, name + " is missing");
    }
    for (const json& odd : {json(), json("text"), json(-1), json(1.5), json(true), json::array({1}),
                            json{{"x", 1}}, json(std::numeric_limits<std::uint64_t>::max()),
                            json(std::numeric_limits<double>::quiet_NaN()), json(std::string(5000, 'x'))}) {
      CAPTURE(odd.dump());
      const bool sound = (odd.is_string() && value.is_string()) || (odd.is_boolean() && value.is_boolean()) ||
                         (part.to_string() == "/shape" && odd.is_object()) ||
                         (value.is_number_float() && odd.is_number() && std::isfinite(odd.get<double>()));
      json other = good;
      other[part] = odd;
      if (sound)
        CHECK(read(other));
      else
        check_refused(other, name);
    }
  }
}

TEST_CASE("position: no object at all, or what could not be JSON") {
  for (const json& odd : {json(), json("text"), json::array(), json(1)}) check_refused(odd, "it is ");
  json foreign = to_json(somewhere());
  foreign["validated"] = "\x1b[2J\xff" + std::string(100, 'y');
  check_refused(foreign, "validated");
  CHECK(read(foreign).error().cause.find('\x1b') == std::string::npos);
}
