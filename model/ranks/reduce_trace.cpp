#include "model/ranks/reduce_trace.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/files/durable.hpp"

namespace sluice {

void ReduceTrace::name_parameters(std::vector<std::string> names) {
  const Lock lock(mutex_);
  names_ = std::move(names);
}

void ReduceTrace::add(Event::Kind kind, std::size_t index) {
  const Lock lock(mutex_);
  events_.push_back({kind, index, std::chrono::steady_clock::now()});
}

std::vector<ReduceTrace::Event> ReduceTrace::take() {
  const Lock lock(mutex_);
  return std::exchange(events_, {});
}

Status ReduceTrace::write(const std::filesystem::path& path, int rank) const {
  const Lock lock(mutex_);
  using Microseconds = std::chrono::duration<double, std::micro>;
  nlohmann::json list = nlohmann::json::array();
  const auto name_row = [&](std::size_t row, const std::string& name) {
    list.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}});
  };
  name_row(0, "backward");
  std::map<std::size_t, double> began;  // by bucket
  for (const Event& event : events_) {
    const double at = Microseconds(event.time.time_since_epoch()).count();
    if (event.kind == Event::Kind::gradient) {
      list.push_back(
          {{"name", names_.at(event.index)}, {"ph", "i"}, {"s", "t"}, {"ts", at}, {"pid", rank}, {"tid", 0}});
    } else if (event.kind == Event::Kind::began) {
      if (!began.contains(event.index)) name_row(event.index + 1, "bucket " + std::to_string(event.index));
      began[event.index] = at;
    } else {
      const double since = began[event.index];
      list.push_back({{"name", "sum over ranks"},
                      {"ph", "X"},
                      {"ts", since},
                      {"dur", at - since},
                      {"pid", rank},
                      {"tid", event.index + 1}});
    }
  }
  const std::string text = nlohmann::json{{"traceEvents", list}}.dump() + "\n";
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return write_output("ranks", path, {&part, 1});
}

}  // namespace sluice
