// The arithmetic of a learning-rate range test: the rate rises exponentially from step to step, and the loss
// tells where learning begins, where it is fastest and where it breaks. Knows nothing of networks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

struct RateSearchOptions {
  double low = 1e-4, high = 10;
  std::int64_t steps = 150;
};

struct RateSearchPoint {
  double rate = 0, loss = 0;
  // Weighted mean of the losses before and after: no lag, so the rate is not overstated. NaN once the loss
  // has left: what comes there would bury the descent before it.
  double smooth = 0;
};

struct RateSearchOutcome {
  std::vector<RateSearchPoint> points;
  std::optional<std::size_t> steepest;  // where the smoothed curve falls fastest
  std::optional<std::size_t> broken;    // from here on the loss is above where it began
  std::size_t lowest = 0;               // of the smoothed curve
  std::string end;                      // why it ended: "all steps", "the loss rose", "not finite"
  std::string why_none;                 // why there is no suggestion, if there is none
  // A quarter of the rate that broke it, or that of the lowest loss where none did. Not the steepest fall:
  // the loss of a new network falls fastest at rates far below those it trains well with.
  [[nodiscard]] std::optional<double> suggestion() const;
};

class RateSearch {
 public:
  [[nodiscard]] static Result<RateSearch> make(const RateSearchOptions& options);

  [[nodiscard]] double rate(std::int64_t step) const;  // of step 0, 1, ...
  // The loss at the next rate. False: that was enough.
  [[nodiscard]] bool add(double loss);
  [[nodiscard]] RateSearchOutcome outcome() const;

 private:
  explicit RateSearch(const RateSearchOptions& options);
  [[nodiscard]] std::size_t sound() const;
  [[nodiscard]] std::vector<double> smoothed(std::size_t count) const;

  RateSearchOptions o_;
  double keep_;                             // weight of a neighbour
  double sum_ = 0, weight_ = 0, best_ = 0;  // of the running mean, which decides when to stop
  std::vector<double> losses_;
  std::string end_ = "all steps";
};

[[nodiscard]] std::string range_table(const RateSearchOutcome& outcome);
[[nodiscard]] nlohmann::ordered_json range_json(const RateSearchOutcome& outcome);

}  // namespace sluice
