// Where the CPU time of an image goes. Each round measures the whole and its parts one right after the other,
// and parts are told apart within a round: a machine that is slower in one round than in the next moves both
// sides of a difference.
#pragma once

#include <string>
#include <vector>

namespace sluice {

// Of one round, ms of a CPU for an image, all threads together.
struct CpuRound {
  double whole = 0;        // the data path
  double read = 0;         // reading by itself
  double read_decode = 0;  // reading and decoding
  double read_code = 0;    // likewise, but without resampling
};

struct CpuParts {
  double whole = 0, read = 0, coding = 0, resample = 0, rest = 0;  // medians of the rounds
};

[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] CpuParts cpu_parts(const std::vector<CpuRound>& rounds);
// "0.214"; a difference that is not above zero is "within noise".
[[nodiscard]] std::string part_text(double ms);

}  // namespace sluice
