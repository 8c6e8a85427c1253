#include "cli/draw/axis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0})
    if (times * power >= least * (1 - 1e-9)) return times * power;
  return 10 * power;
}

// Ticks so far apart need so many digits after the point; beyond what one reads at a glance, exponents.
std::string linear_label(double value, double step, double largest) {
  if (value == 0) return "0";
  const int power = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  if (largest < 1e6 && power >= -5) return fmt::format("{:.{}f}", value, std::max(0, -power));
  const int size = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  return fmt::format("{:.{}e}", value, std::clamp(size - power, 0, 15));
}

std::string decade_label(double value) { return fmt::format("{:.6g}", value); }

constexpr int fewest = 4, most = 9;  // intervals of a linear axis, decades of a logarithmic one

}  // namespace

Axis Axis::linear(double low, double high, Ends ends) {
  Axis axis;
  if (!(low <= high)) low = 0, high = 1;
  const bool exact = ends == Ends::exact;
  if (!exact && low > 0 && low < 0.4 * high) low = 0;  // the zero line tells more than an odd end does
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low <= 1e-9 * size || size < 1e-290) {
    const double around = size < 1e-290 ? 1 : 0.1 * size;
    low -= around, high += around;
  }
  const double step = nice_step((high - low) / (most - 1));
  const double below = std::floor(low / step + 1e-9), above = std::ceil(high / step - 1e-9);
  axis.low_ = exact ? low : below * step, axis.high_ = exact ? high : above * step;
  const double first = exact ? std::ceil(low / step - 1e-9) : below,
               last = exact ? std::floor(high / step + 1e-9) : above;
  for (int i = 0; i <= static_cast<int>(last - first); ++i) {
    const double value = (first + i) * step;
    axis.ticks_.push_back(
        {value, linear_label(value, step, std::max(std::abs(axis.low_), std::abs(axis.high_)))});
  }
  return axis;
}

Axis Axis::logarithmic(double low, double high) {
  Axis axis;
  axis.logarithmic_ = true;
  if (!(low <= high)) low = 0.1, high = 1;
  low = std::max(low, 1e-300);
  high = std::max(high, low);
  if (high <= low * (1 + 1e-9)) low /= 2, high *= 2;
  axis.low_ = low, axis.high_ = high;
  const int first = static_cast<int>(std::floor(std::log10(low) - 1e-9)),
            last = static_cast<int>(std::ceil(std::log10(high) + 1e-9));
  const int every = (last - first + most - 1) / most;
  const bool fine = last - first <= fewest;
  for (int power = first; power <= last; ++power)
    for (const int times : {1, 2, 5}) {
      const double value = times * std::pow(10.0, power);
      if (!axis.has(value) || (every > 1 && (times > 1 || power % every != 0))) continue;
      const bool named = times == 1 || fine;
      axis.ticks_.push_back({value, named ? decade_label(value) : ""});
    }
  // Within a factor of two there may be no such tick: the ends themselves then say where we are.
  if (axis.ticks_.size() < 2)
    axis.ticks_ = {{low, fmt::format("{:.3g}", low)}, {high, fmt::format("{:.3g}", high)}};
  return axis;
}

double Axis::at(double value) const {
  if (logarithmic_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

bool Axis::has(double value) const {
  const double share = at(value);
  return share >= -1e-9 && share <= 1 + 1e-9;
}

}  // namespace sluice
