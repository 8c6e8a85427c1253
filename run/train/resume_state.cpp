#include "run/train/resume_state.hpp"

#include <stdexcept>

#include "base/printable.hpp"

namespace sluice {
namespace {

using nlohmann::json;

template <class Whole = std::int64_t>
Whole count(const json& in, const char* key) {
  const json& value = in.at(key);
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0))
    throw std::invalid_argument(std::string(key) + " is " + value.dump());
  return value.get<Whole>();
}

PhaseSums sums(const json& in, const char* key) {
  const json& j = in.at(key);
  PhaseSums s;
  s.loss = j.at("loss");
  s.count = count(j, "count");
  s.judged = count(j, "judged");
  s.correct1 = count(j, "correct1");
  s.correct5 = count(j, "correct5");
  s.batches = count(j, "batches");
  return s;
}

ResumeState read(const json& in) {
  ResumeState s;
  s.step = count<std::uint64_t>(in, "step");
  s.validated = in.at("validated").get<bool>();
  s.records = {count<std::size_t>(in, "records"), count(in, "epoch"), count(in, "step"), s.validated};
  s.shape = in.at("shape").get<json::object_t>();
  s.bad = in.at("bad");
  s.bad_lines = count<std::uint64_t>(s.bad, "lines");
  count(s.bad, "in_phase");
  s.epoch_sums = sums(in, "epoch_sums");
  s.since_record = sums(in, "since_record");
  s.monitor = in.value("monitor", "");
  for (const json& b : in.at("best").get<json::array_t>())
    s.best.push_back({b.at("score").get<double>(), b.at("file").get<std::string>()});
  return s;
}

}  // namespace

Result<ResumeState> resume_state(const Snapshot& checkpoint) {
  try {
    return read(checkpoint.state);
  } catch (const std::exception& error) {  // of the JSON library, or ours
    return Error{"resume", checkpoint.source,
                 "does not say all that is needed to go on from it: " + printable(error.what()),
                 "take another checkpoint, or start from its weights (model.weights)"};
  }
}

}  // namespace sluice
