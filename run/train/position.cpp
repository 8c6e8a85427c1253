#include "run/train/position.hpp"

#include <cmath>
#include <limits>

#include "base/json_text.hpp"

namespace sluice {
namespace {

using nlohmann::json;

// Thrown within this file alone.
struct Unfit {
  std::string cause;
};

// The members of one JSON object, by name.
class Members {
 public:
  Members(const json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) throw Unfit{(name_.empty() ? "it" : name_) + " is " + shown(object)};
  }

  [[nodiscard]] std::uint64_t count(const char* key) const {
    const json& value = at(key);
    // Any count fits into the signed type that some of its readers use.
    if (value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0) &&
        value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      return value.get<std::uint64_t>();
    throw unfit(key, value);
  }
  [[nodiscard]] std::int64_t whole(const char* key) const { return static_cast<std::int64_t>(count(key)); }
  [[nodiscard]] bool flag(const char* key) const { return of_kind(key, json::value_t::boolean).get<bool>(); }
  [[nodiscard]] std::string text(const char* key) const {
    return of_kind(key, json::value_t::string).get<std::string>();
  }
  [[nodiscard]] double number(const char* key) const {
    const json& value = at(key);
    if (!value.is_number() || !std::isfinite(value.get<double>())) throw unfit(key, value);
    return value.get<double>();
  }
  [[nodiscard]] Members object(const char* key) const { return {at(key), path(key)}; }
  [[nodiscard]] const json& all() const { return object_; }
  [[nodiscard]] std::vector<Members> list(const char* key) const {
    std::vector<Members> members;
    for (const json& entry : of_kind(key, json::value_t::array))
      members.emplace_back(entry, path(key) + "[]");
    return members;
  }

 private:
  [[nodiscard]] static std::string shown(const json& value) {
    constexpr std::size_t most = 40;
    if (value.is_structured()) return std::string("an ") + value.type_name();
    const std::string text = json_text(value);
    return text.size() <= most ? text : text.substr(0, most) + "...";
  }
  [[nodiscard]] std::string path(const char* key) const { return name_.empty() ? key : name_ + "." + key; }
  [[nodiscard]] Unfit unfit(const char* key, const json& value) const {
    return {path(key) + " is " + shown(value)};
  }
  [[nodiscard]] const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw Unfit{path(key) + " is missing"};
    return *found;
  }
  [[nodiscard]] const json& of_kind(const char* key, json::value_t kind) const {
    const json& value = at(key);
    if (value.type() != kind) throw unfit(key, value);
    return value;
  }

  const json& object_;
  std::string name_;
};

json to_json(const PhaseSums& s) {
  return {{"loss", s.loss},         {"count", s.count},       {"judged", s.judged},
          {"correct1", s.correct1}, {"correct5", s.correct5}, {"batches", s.batches}};
}

PhaseSums sums_of(const Members& m) {
  return {.loss = m.number("loss"),
          .count = m.whole("count"),
          .judged = m.whole("judged"),
          .correct1 = m.whole("correct1"),
          .correct5 = m.whole("correct5"),
          .batches = m.whole("batches")};
}

Position read(const Members& m) {
  Position p;
  p.step = m.count("step");
  p.validated = m.flag("validated");
  p.epoch = m.whole("epoch");
  p.records = m.count("records");
  p.epoch_sums = sums_of(m.object("epoch_sums"));
  p.since_record = sums_of(m.object("since_record"));
  p.bad = {.in_phase = m.object("bad").count("in_phase"), .lines = m.object("bad").count("lines")};
  p.monitor = m.text("monitor");
  p.shape = m.object("shape").all();
  p.config = m.text("config");
  for (const Members& best : m.list("best"))
    p.best.push_back({.score = best.number("score"), .file = best.text("file")});
  return p;
}

}  // namespace

json to_json(const Position& p) {
  json best = json::array();
  for (const Keeper::Best& b : p.best) best.push_back({{"score", b.score}, {"file", b.file}});
  return {{"step", p.step},
          {"validated", p.validated},
          {"epoch", p.epoch},
          {"records", p.records},
          {"epoch_sums", to_json(p.epoch_sums)},
          {"since_record", to_json(p.since_record)},
          {"bad", {{"in_phase", p.bad.in_phase}, {"lines", p.bad.lines}}},
          {"monitor", p.monitor},
          {"shape", p.shape},
          {"config", p.config},
          {"best", best}};
}

Result<Position> position_of(const Snapshot& checkpoint) {
  try {
    return read(Members(checkpoint.state, ""));
  } catch (const Unfit& unfit) {
    return Error{"resume", checkpoint.source,
                 "does not say all that is needed to go on from it: " + unfit.cause,
                 "take another checkpoint, or start from its weights (model.weights)"};
  }
}

}  // namespace sluice
