// A pipeline that sizes itself: from what an interval of the run was like to how many reads go on at once,
// how many files are read ahead and how many batch slots are in use. Pure: no clock, no threads. Sizes stay
// within given bounds, and those within the budget; batches never depend on them.
//
// Reads at once follow Little's law: the rate at which the device takes images, times how long a file takes.
// Whether more of them help is tried out: a step up that brings no more bytes is taken back and remembered.
// Sizes go up as soon as the device waits, and down only after a long quiet time, never again to one at which
// the device waited.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "graph/figures/load.hpp"

namespace sluice {

struct SizingOptions {
  Sizes least, most;  // where they are equal, nothing is decided; a run begins with the least
  std::chrono::milliseconds every{1000};  // between two looks
};

class Sizing {
 public:
  explicit Sizing(const SizingOptions& options) : o_(options), now_(options.least), floor_(options.least) {}

  // Decides, and says each decision in a line.
  [[nodiscard]] std::vector<std::string> look(const Load& load);
  // Likewise from a running graph, if the last look is long enough ago.
  [[nodiscard]] std::vector<std::string> look(GraphFigures now);
  [[nodiscard]] const Sizes& now() const { return now_; }
  // Whether the last trial of more reads at once brought more; nothing: none was made.
  [[nodiscard]] std::optional<bool> more_helps() const { return more_helps_; }
  // The system gives no more threads than these.
  void limit_threads(unsigned threads);

 private:
  struct Trial {
    unsigned before = 0;
    double bytes_per_s = 0;
    int settling = 0;  // looks until its effect can be seen
  };
  void judge_trial(const Load& load, std::vector<std::string>& told);
  void raise(const Load& load, std::vector<std::string>& told);
  void lower(const Load& load, std::vector<std::string>& told);

  SizingOptions o_;
  Sizes now_, floor_;
  std::optional<Trial> trial_;
  std::optional<bool> more_helps_;
  int until_retry_ = 0, quiet_ = 0;
  GraphFigures looked_;  // at the last look
};

}  // namespace sluice
