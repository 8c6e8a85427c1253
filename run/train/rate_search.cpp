#include "run/train/rate_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sluice {
namespace {

constexpr std::int64_t settle = 10;     // steps before a rise of the loss counts
constexpr double too_high = 4;          // times the best: the loss has left for good
constexpr double below_break = 4;       // times: a sweep passes a rate in a few steps, a run stays there
constexpr double beyond_scatter = 1.1;  // times: noise alone moves the smoothed curve less

// How far the losses lie from the curve, up to its lowest point.
double scatter(const std::vector<RateSearchPoint>& points, std::size_t lowest) {
  double sum = 0;
  for (std::size_t i = 0; i <= lowest; ++i) sum += std::pow(points[i].loss - points[i].smooth, 2);
  return std::sqrt(sum / static_cast<double>(lowest + 1));
}

// Over a few steps to each side, so that one wiggle does not win, and only where the fall is well under way:
// the flat beginning is long, and its noise would find a place that is steeper by chance.
std::size_t steepest_fall(const std::vector<RateSearchPoint>& points, std::size_t lowest) {
  const double start = points.front().smooth, whole = start - points[lowest].smooth;
  const std::size_t reach = std::max<std::size_t>(1, points.size() / 12);
  std::size_t best = 0;
  double fall = 0;
  for (std::size_t i = 0; i <= lowest; ++i) {
    if (start - points[i].smooth < 0.2 * whole) continue;
    const std::size_t from = i < reach ? 0 : i - reach, to = std::min(i + reach, lowest);
    const double here =
        (points[from].smooth - points[to].smooth) / static_cast<double>(std::max(to - from, std::size_t{1}));
    if (here > fall) fall = here, best = i;
  }
  return best;
}

}  // namespace

std::optional<double> RateSearchOutcome::suggestion() const {
  if (!steepest) return std::nullopt;
  if (!broken) return points[lowest].rate;
  return std::max(points[*broken].rate / below_break, points[*steepest].rate);
}

Result<RateSearch> RateSearch::make(const RateSearchOptions& o) {
  if (!(o.low > 0) || !std::isfinite(o.high) || !(o.low < o.high))
    return Error{"lr-find", "--low and --high", "must be above 0, the low one below the high one", ""};
  if (o.steps < 2 * settle || o.steps > 1'000'000)
    return Error{"lr-find", "--steps",
                 "must be from " + std::to_string(2 * settle) + " to 1000000: fewer show no curve", ""};
  return RateSearch(o);
}

// A fifteenth of the range: with 100 steps over seven decades, a mean over half a decade to each side.
RateSearch::RateSearch(const RateSearchOptions& o)
    : o_(o), keep_(1 - 1 / std::max(2.0, static_cast<double>(o.steps) / 15)) {}

double RateSearch::rate(std::int64_t step) const {
  const double share = static_cast<double>(step) / static_cast<double>(o_.steps - 1);
  return o_.low * std::pow(o_.high / o_.low, share);
}

bool RateSearch::add(double loss) {
  losses_.push_back(loss);
  if (!std::isfinite(loss)) {
    end_ = "not finite";
    return false;
  }
  sum_ = keep_ * sum_ + loss;
  weight_ = keep_ * weight_ + 1;
  const double mean = sum_ / weight_;
  const auto count = static_cast<std::int64_t>(losses_.size());
  if (count > settle && mean > too_high * best_) {
    end_ = "the loss rose";
    return false;
  }
  best_ = count == 1 ? mean : std::min(best_, mean);
  return count < o_.steps;
}

// How many points there are before the loss leaves upwards: before its running mean is clearly above where it
// began.
std::size_t RateSearch::sound() const {
  const double first = std::min<double>(settle, static_cast<double>(losses_.size()));
  double level = 0, squares = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(first); ++i)
    level += losses_[i] / first, squares += losses_[i] * losses_[i] / first;
  const double spread = std::sqrt(std::max(0.0, squares - level * level));
  const double limit = level + std::max(3 * spread, 0.05 * level);
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    sum = keep_ * sum + losses_[i];
    weight = keep_ * weight + 1;
    if (static_cast<double>(i) >= first && !(sum / weight <= limit)) return i;
  }
  return losses_.size();
}

// Of the first `count` losses; the weights fall off by the same factor to both sides.
std::vector<double> RateSearch::smoothed(std::size_t count) const {
  std::vector<double> sums(count, 0), weights(count, 0);
  const auto pass = [&](std::size_t i, double& sum, double& weight) {
    sums[i] += sum, weights[i] += weight;  // of this side; the own value is added once, below
    sum = keep_ * (sum + losses_[i]), weight = keep_ * (weight + 1);
  };
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < count; ++i) pass(i, sum, weight);
  sum = weight = 0;
  for (std::size_t i = count; i-- > 0;) pass(i, sum, weight);
  for (std::size_t i = 0; i < count; ++i) sums[i] = (sums[i] + losses_[i]) / (weights[i] + 1);
  return sums;
}

RateSearchOutcome RateSearch::outcome() const {
  RateSearchOutcome out;
  out.end = end_;
  for (std::size_t i = 0; i < losses_.size(); ++i)
    out.points.push_back(
        {rate(static_cast<std::int64_t>(i)), losses_[i], std::numeric_limits<double>::quiet_NaN()});
  if (static_cast<std::int64_t>(losses_.size()) <= settle) {
    out.why_none =
        "it ended after " + std::to_string(losses_.size()) + " steps (" + end_ + "); start lower with --low";
    return out;
  }
  const std::vector<double> smooth = smoothed(sound());
  for (std::size_t i = 0; i < smooth.size(); ++i) out.points[i].smooth = smooth[i];
  if (smooth.size() < losses_.size()) out.broken = smooth.size();
  out.lowest = static_cast<std::size_t>(std::ranges::min_element(smooth) - smooth.begin());
  const double fall = smooth.front() - smooth[out.lowest];
  const double noise = std::max(beyond_scatter * scatter(out.points, out.lowest), 1e-3 * smooth.front());
  if (out.lowest == 0 || fall <= noise)
    out.why_none =
        "the loss never fell by more than its own scatter; try more --steps, over a smaller range of rates";
  else
    out.steepest = steepest_fall(out.points, out.lowest);
  return out;
}

std::string range_table(const RateSearchOutcome& outcome) {
  std::string text = "    optim.lr        loss    smoothed\n";
  for (std::size_t i = 0; i < outcome.points.size(); ++i) {
    const RateSearchPoint& p = outcome.points[i];
    text += fmt::format("{:>12.4g}{:>12.5g}", p.rate, p.loss);
    text += std::isfinite(p.smooth) ? fmt::format("{:>12.5g}", p.smooth) : "           -";
    if (outcome.steepest == i) text += "  steepest fall";
    if (outcome.lowest == i && outcome.lowest > 0) text += "  lowest";
    text += "\n";
  }
  text += "ended: " + outcome.end + "\n";
  if (outcome.broken)
    text += "too high: optim.lr = " + fmt::format("{:.2g}", outcome.points[*outcome.broken].rate) +
            ", where the loss rises above its start\n";
  if (const auto rate = outcome.suggestion())
    return text + "suggestion: optim.lr = " + fmt::format("{:.2g}", *rate) +
           (outcome.broken ? " (a quarter of what is too high)\n"
                           : " (lowest loss; no rate was too high: try a higher --high)\n");
  return text + "no suggestion: " + outcome.why_none + "\n";
}

nlohmann::ordered_json range_json(const RateSearchOutcome& outcome) {
  nlohmann::ordered_json out;
  out["suggestion"] = nullptr;
  if (const auto rate = outcome.suggestion())
    out["suggestion"] = *rate;
  else
    out["why_none"] = outcome.why_none;
  out["end"] = outcome.end;
  if (outcome.broken) out["too_high"] = outcome.points[*outcome.broken].rate;
  out["points"] = nlohmann::ordered_json::array();
  if (outcome.steepest) out["steepest"] = outcome.points[*outcome.steepest].rate;
  if (outcome.lowest > 0) out["lowest"] = outcome.points[outcome.lowest].rate;
  for (const RateSearchPoint& p : outcome.points)  // what is not finite becomes null
    out["points"].push_back({{"lr", p.rate}, {"loss", p.loss}, {"smooth", p.smooth}});
  return out;
}

}  // namespace sluice
