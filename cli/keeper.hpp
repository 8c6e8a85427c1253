// Keeps checkpoints: `last.ckpt`, and the best by the monitored metric under their own names. Writes in the
// background: training stands still only for the copy of the weights, and for a write that is still under
// way.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "graph/result.hpp"
#include "model/checkpoint_file.hpp"

namespace sluice {

class Keeper {
 public:
  struct Best {
    double score = 0;
    std::string file;
  };
  Keeper(std::filesystem::path folder, std::size_t keep, std::string monitor)
      : folder_(std::move(folder)), keep_(keep), monitor_(std::move(monitor)) {}

  // `fill` copies weights and state into the snapshot, which keeps its memory from call to call, and gets the
  // list of the best as it will be. Given a value of the monitored metric, the checkpoint joins them if it is
  // good enough.
  Status save(const std::function<Status(Snapshot&, const std::vector<Best>&)>& fill, std::int64_t epoch,
              const double* monitored);
  Status wait();  // for the write under way; its error, if it failed

  [[nodiscard]] const std::vector<Best>& best() const { return best_; }
  void resume(std::vector<Best> best) { best_ = std::move(best); }
  [[nodiscard]] const std::string& monitor() const { return monitor_; }

 private:
  Status write(const std::string& best_name, const std::vector<std::string>& drop);

  std::filesystem::path folder_;
  std::size_t keep_;
  std::string monitor_;
  Snapshot snapshot_;
  std::vector<Best> best_;  // best first
  std::future<Status> writing_;
};

}  // namespace sluice
