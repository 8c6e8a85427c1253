// Counts the images that could not be used, in batch order, lists each in quarantine.jsonl, and ends the run
// once they are more than data.max_bad of an epoch's images.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "graph/slots.hpp"
#include "nodes/line_file.hpp"
#include "nodes/sampler.hpp"

namespace sluice {

class BadImages {
 public:
  BadImages(std::filesystem::path file, double max_share) : file_(std::move(file)), max_share_(max_share) {}

  // `images`: how many the phase has in all. A place counts once, however many replacements were bad as well.
  // On failure nothing is counted, so that a resumed run notes the same batch again.
  Status note(const BatchPlan& plan, std::uint64_t images, const std::vector<Bad>& bad);

  [[nodiscard]] nlohmann::json state() const { return {{"in_phase", in_phase_}, {"lines", lines_}}; }
  void resume(const nlohmann::json& state) {
    in_phase_ = state.at("in_phase");
    lines_ = state.at("lines");
  }

 private:
  std::filesystem::path file_;
  double max_share_;
  LineSink sink_;                           // opened with the first bad image
  std::uint64_t in_phase_ = 0, lines_ = 0;  // images of this phase; lines written
};

}  // namespace sluice
