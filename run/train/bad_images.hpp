// Counts the images that could not be used, in batch order, lists each in quarantine.jsonl, and ends the run
// once they are more than data.max_bad of an epoch's images. Each rank lists its own; all count together.
#pragma once

#include <filesystem>
#include <vector>

#include "base/files/line.hpp"
#include "graph/memory/slots.hpp"
#include "nodes/sampler.hpp"

namespace sluice {

// As a checkpoint keeps them.
struct BadCounts {
  std::uint64_t in_phase = 0;  // images of the phase under way
  std::uint64_t lines = 0;     // of the list
  bool operator==(const BadCounts&) const = default;
};

class BadImages {
 public:
  BadImages(std::filesystem::path file, double max_share) : file_(std::move(file)), max_share_(max_share) {}

  // `images`: how many the phase has in all. A place counts once, however many replacements were bad as well.
  // On failure nothing is counted, so that a resumed run notes the same batch again.
  Status note(const BatchPlan& plan, std::uint64_t images, const std::vector<Bad>& bad);

  // The same in two parts, for many ranks: `list` what this one found, and later `count` what all found in
  // that batch.
  Status list(const BatchPlan& plan, const std::vector<Bad>& bad);
  Status count(const BatchPlan& plan, std::uint64_t images, std::uint64_t places);
  [[nodiscard]] static std::uint64_t places(const std::vector<Bad>& bad);

  [[nodiscard]] const BadCounts& counts() const { return counts_; }
  void resume(const BadCounts& counts) { counts_ = counts; }

 private:
  std::filesystem::path file_;
  double max_share_;
  LineSink sink_;  // opened with the first bad image
  BadCounts counts_;
  std::string last_;  // file and cause, for the error
};

// quarantine.jsonl of rank 0, quarantine.rankN.jsonl of the others.
[[nodiscard]] std::string quarantine_name(int rank);

// Takes out the lines that were written in batch `next` or later; how many are left. Rank 0's file is cut by
// the count in the checkpoint, which knows nothing of the others' files.
[[nodiscard]] Result<std::size_t> cut_quarantine(const std::filesystem::path& file, const BatchPlan& next);
// Copies the lines that it would leave to another file, if there are any.
Status copy_quarantine(const std::filesystem::path& from, const std::filesystem::path& to,
                       const BatchPlan& next);

}  // namespace sluice
