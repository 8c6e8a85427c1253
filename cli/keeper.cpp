#include "cli/keeper.hpp"

#include <algorithm>
#include <cstdio>

namespace sluice {
namespace fs = std::filesystem;

Status Keeper::save(const std::function<Status(Snapshot&, const std::vector<Best>&)>& fill,
                    std::int64_t epoch, const double* monitored) {
  if (Status before = wait(); !before) return before;
  std::string name;
  std::vector<std::string> drop;
  std::vector<Best> best = best_;
  if (monitored && keep_ > 0) {
    const bool less_is_better = monitor_.ends_with("loss");
    char value[32];
    std::snprintf(value, sizeof value, less_is_better ? "%.4f" : "%.2f", *monitored);
    std::string metric = monitor_;
    std::replace(metric.begin(), metric.end(), '/', '_');
    name = "epoch=" + std::to_string(epoch) + "-" + metric + "=" + value + ".ckpt";
    best.push_back({less_is_better ? -*monitored : *monitored, name});
    std::stable_sort(best.begin(), best.end(),
                     [](const Best& a, const Best& b) { return a.score > b.score; });
    for (; best.size() > keep_; best.pop_back())
      if (best.back().file == name)
        name.clear();
      else
        drop.push_back(best.back().file);
  }
  if (Status filled = fill(snapshot_, best); !filled) return filled;
  best_ = std::move(best);
  writing_ = std::async(std::launch::async, [this, name, drop] { return write(name, drop); });
  return Done{};
}

Status Keeper::write(const std::string& best_name, const std::vector<std::string>& drop) {
  const fs::path last = folder_ / "last.ckpt";
  if (Status written = write_checkpoint(snapshot_, last); !written) return written;
  std::error_code error;
  if (!best_name.empty()) {
    // The next `last` replaces the name, not the file: a hard link costs nothing and stays as it is.
    const fs::path best = folder_ / best_name;
    fs::remove(best, error);
    fs::create_hard_link(last, best, error);
    if (error)
      if (Status written = write_checkpoint(snapshot_, best); !written) return written;
  }
  for (const std::string& file : drop) fs::remove(folder_ / file, error);
  return Done{};
}

Status Keeper::wait() {
  if (!writing_.valid()) return Done{};
  return writing_.get();
}

}  // namespace sluice
