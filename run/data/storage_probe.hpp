// How fast files can be read, so many at a time. Each is dropped from the kernel's cache before it is read,
// and the figures tell where that did not help: storage looks faster then than it is.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

struct ReadFigures {
  unsigned in_flight = 1;
  std::size_t files = 0, bytes = 0;
  std::size_t cached = 0;                // were still in memory after they had been dropped
  std::size_t unknown = 0;               // the file system does not tell
  double seconds = 0;                    // for all of them together
  double median_ms = 0, slowest_ms = 0;  // for one: open, read, close
  std::size_t failed = 0;
  std::optional<Error> failure;  // the first file that could not be read

  [[nodiscard]] double images_per_s() const { return seconds > 0 ? static_cast<double>(files) / seconds : 0; }
  [[nodiscard]] double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

// Starts no more files once `limit` is over.
[[nodiscard]] ReadFigures read_files(std::span<const std::string> files, unsigned in_flight,
                                     std::chrono::milliseconds limit);

// `count` numbers below `size`, evenly spread; all of them if there are fewer. The two halves of a spread
// (`offset` 0 and 0.5) have none in common, as long as there are enough.
[[nodiscard]] std::vector<std::size_t> spread(std::size_t size, std::size_t count, double offset = 0);

}  // namespace sluice
