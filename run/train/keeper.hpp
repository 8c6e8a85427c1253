// Keeps checkpoints: `last.ckpt`, the one before it (`previous.ckpt`), and the best by the monitored metric
// under their own names. Writes in the background: training stands still only for the copy of the weights,
// and for a write that is still under way.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

// Whether a file's name is one that a Keeper gives to the best; anything else in a checkpoint's list is not
// ours to read or delete.
[[nodiscard]] bool is_best_name(const std::string& name);

class Keeper {
 public:
  struct Best {
    double score = 0;
    std::string file;
  };
  // `before` is called ahead of each write, on the writing thread: what a checkpoint counts on should be on
  // disk earlier than the checkpoint. If it fails, the checkpoint is written all the same, and wait() tells.
  Keeper(
      std::filesystem::path folder, std::size_t keep, std::string monitor,
      std::function<Status()> before = [] { return Status(Done{}); })
      : folder_(std::move(folder)), keep_(keep), monitor_(std::move(monitor)), before_(std::move(before)) {}

  // `fill` copies weights and state into the snapshot, which keeps its memory from call to call, and gets the
  // list of the best as it will be. Given a value of the monitored metric, the checkpoint joins them if it is
  // good enough.
  Status save(const std::function<Status(Snapshot&, const std::vector<Best>&)>& fill, std::int64_t epoch,
              const double* monitored);
  Status wait();  // for the write under way; its error, if it failed
  // Whether the last.ckpt that was written is still there: somebody may have removed the folder.
  [[nodiscard]] Status still_there() const;

  [[nodiscard]] const std::vector<Best>& best() const { return best_; }  // as of the last write waited for
  void resume(const std::vector<Best>& best);                            // those whose files are still there
  [[nodiscard]] const std::string& monitor() const { return monitor_; }

 private:
  Status write(const std::string& best_name, const std::vector<std::string>& drop);

  std::filesystem::path folder_;
  std::size_t keep_;
  std::string monitor_;
  std::function<Status()> before_;
  Snapshot snapshot_;
  std::vector<Best> best_, pending_;  // best first; pending: once the write under way is finished
  std::future<Status> writing_;
  std::uintmax_t size_ = 0;  // of the last.ckpt that was written
};

}  // namespace sluice
