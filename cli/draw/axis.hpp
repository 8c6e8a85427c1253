// An axis of a plot: which values it covers, where it has ticks (1, 2 or 5 times a power of ten), and where a
// value lies on it. Linear or logarithmic.
#pragma once

#include <string>
#include <vector>

namespace sluice {

struct Tick {
  double value;
  std::string label;  // may be empty: a line without a word
};

class Axis {
 public:
  enum class Ends { on_ticks, exact };
  // Nothing to show (low > high) gives an axis from 0 to 1, a single value one around it. Finite ends below
  // 1e300, and positive ones if logarithmic (whose ends are always exact).
  [[nodiscard]] static Axis linear(double low, double high, Ends ends = Ends::on_ticks);
  [[nodiscard]] static Axis logarithmic(double low, double high);

  [[nodiscard]] double at(double value) const;  // 0 at the low end, 1 at the high end
  [[nodiscard]] bool has(double value) const;   // within the ends, with a hair's tolerance
  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }

 private:
  double low_ = 0, high_ = 1;
  bool logarithmic_ = false;
  std::vector<Tick> ticks_;
};

}  // namespace sluice
