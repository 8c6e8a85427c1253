#include "run/train/resume_state.hpp"

#include <doctest/doctest.h>

using namespace sluice;
using nlohmann::json;

namespace {

const json sums = {{"loss", 1.5},   {"count", 4},    {"judged", 4},
                   {"correct1", 1}, {"correct5", 2}, {"batches", 1}};
const json good = {{"step", 7},
                   {"validated", true},
                   {"epoch", 1},
                   {"records", 9},
                   {"epoch_sums", sums},
                   {"since_record", sums},
                   {"bad", {{"in_phase", 1}, {"lines", 3}}},
                   {"monitor", "val/loss"},
                   {"shape", {{"batch", 4}}},
                   {"best", {{{"score", -0.5}, {"file", "epoch=0-val_loss=0.5000.ckpt"}}}}};

bool taken(const json& state) {
  Snapshot snapshot;
  snapshot.state = state;
  snapshot.source = "runs/a/last.ckpt";
  const Result<ResumeState> read = resume_state(snapshot);
  if (!read) CHECK(read.error().subject == "runs/a/last.ckpt");
  return static_cast<bool>(read);
}

}  // namespace

TEST_CASE("resume state: read whole") {
  Snapshot snapshot;
  snapshot.state = json::parse(good.dump());
  const Result<ResumeState> s = resume_state(snapshot);
  REQUIRE_MESSAGE(s, s.error().text());
  CHECK(s->step == 7);
  CHECK(s->records.records == 9);
  CHECK(s->records.step == 7);
  CHECK(s->records.epoch == 1);
  CHECK(s->records.validated);
  CHECK(s->bad_lines == 3);
  CHECK(s->since_record.correct5 == 2);
  REQUIRE(s->best.size() == 1);
  CHECK(s->best[0].score == -0.5);
}

TEST_CASE("resume state: refused where a part is missing or of another kind") {
  CHECK(taken(good));
  for (const auto& [key, value] : good.items()) {
    CAPTURE(key);
    json without = good;
    without.erase(key);
    CHECK(taken(without) == (key == "monitor"));
    for (const json& odd : {json(), json("text"), json(-1), json(1.5), json::array({1}), json{{"x", 1}}}) {
      CAPTURE(odd.dump());
      json other = good;
      other[key] = odd;
      if (other[key].type() == good[key].type() && key != "best" && !key.ends_with("sums") && key != "bad" &&
          key != "since_record" && odd != -1)
        continue;
      CHECK_FALSE(taken(other));
    }
  }
  for (const json& odd : {json(), json("text"), json::array()}) CHECK_FALSE(taken(odd));
}
