// Some images of a folder, read and decoded on one thread as a run would: how many cannot be used, and the
// time that the others take.
#pragma once

#include <cstdint>
#include <optional>

#include "nodes/data_path.hpp"

namespace sluice {

struct ImageSample {
  std::size_t looked_at = 0, bad = 0;
  std::size_t whole = 0;       // images that the folder has
  std::string first_bad;       // file and cause
  std::optional<Error> fatal;  // a file that would end a run
  double ms = 0;               // to decode one, the mean of the good ones
};

[[nodiscard]] ImageSample sample_images(const DataSets& sets, Split split, std::size_t count,
                                        const DataPathOptions& options);

// Whether a run over images like these would stop for data.max_bad: surely if all were looked at, else beyond
// what a sample may show by chance.
[[nodiscard]] bool too_many_bad(const ImageSample& sample, double max_bad);

}  // namespace sluice
