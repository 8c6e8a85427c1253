// How far a phase has come, as text: one line for a terminal, one for a file. Pure: no clock, no screen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nodes/record/metrics.hpp"

namespace sluice {

struct Progress {
  std::string label;  // "Epoch 0", "Validation"
  std::string plain =
      {};  // the same for plain lines: "epoch 0 validation"; if empty, the label in small letters
  std::int64_t done = 0;
  std::int64_t total = 0;   // 0 = unknown
  std::int64_t before = 0;  // of `done`, what an earlier run had done: not counted in the rate
  double elapsed = 0;       // seconds since the phase began here
  Values values = {};       // most important first: the last ones go when the terminal is narrow
};

// "Epoch 0:  12%|█▏        | 50/417 [00:45<05:31, 1.10it/s, train/loss=2.31]", never more than `width`
// columns.
[[nodiscard]] std::string progress_line(const Progress& progress, int width);

// "epoch 0 step 50/417 train/loss 2.31 elapsed 00:45 left 05:31"
[[nodiscard]] std::string plain_line(const Progress& progress);

// "Epoch 0: train/loss 1.2345 val/loss 0.9800 val/acc1 71.20 (34.1 s, 282 img/s)"; losses with four digits,
// accuracies in percent with two.
[[nodiscard]] std::string summary_line(std::int64_t epoch, const Values& values, double seconds,
                                       double images_per_second);

[[nodiscard]] std::string clock_text(double seconds);      // "00:45", "1:02:03"; "?" if not finite
[[nodiscard]] std::string short_number(double value);      // three significant digits
[[nodiscard]] std::size_t columns(std::string_view text);  // what UTF-8 text takes on a terminal

}  // namespace sluice
