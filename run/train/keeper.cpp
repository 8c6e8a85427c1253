#include "run/train/keeper.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "base/files/durable.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// `last` stays under this name when the new one takes its own. Where there are no hard links it is renamed,
// and for a while there is no `last`.
void keep_previous(const fs::path& folder) {
  const fs::path last = folder / "last.ckpt", previous = folder / "previous.ckpt";
  if (!link_file(last, previous)) (void)move_file(last, previous);  // mostly there is no `last` yet
}

}  // namespace

bool is_best_name(const std::string& name) {
  return name.starts_with("epoch=") && name.ends_with(".ckpt") && name.find('/') == std::string::npos;
}

Status Keeper::save(const std::function<Status(Snapshot&, const std::vector<Best>&)>& fill,
                    std::int64_t epoch, const double* monitored) {
  if (Status before = wait(); !before) return before;
  std::string name;
  std::vector<std::string> drop;
  std::vector<Best> best = best_;
  if (monitored && keep_ > 0) {
    const bool less_is_better = monitor_.ends_with("loss");
    const std::string value = fmt::format("{:.{}f}", *monitored, less_is_better ? 4 : 2);
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
  pending_ = std::move(best);
  const auto work = [this, name, drop] { return write(name, drop); };
  try {
    writing_ = std::async(std::launch::async, work);
  } catch (const std::system_error&) {  // no thread is left for it: training waits while this one writes
    std::promise<Status> written;
    written.set_value(work());
    writing_ = written.get_future();
  }
  return Done{};
}

// The best one's own name comes first: a `last` that lists it never exists without it.
Status Keeper::write(const std::string& best_name, const std::vector<std::string>& drop) {
  const fs::path last = folder_ / "last.ckpt", best = folder_ / best_name;
  const Status ready = before_();  // an error there must not cost the weights as well
  const Status placed = best_name.empty() ? Status(Done{}) : write_checkpoint(snapshot_, best);
  keep_previous(folder_);
  if (best_name.empty() || !placed || !link_file(best, last))
    if (Status written = write_checkpoint(snapshot_, last); !written) return written;
  if (!placed) return placed;
  std::error_code ignored;
  size_ = fs::file_size(last, ignored);
  for (const std::string& file : drop) fs::remove(folder_ / file, ignored);
  return ready;
}

Status Keeper::wait() {
  if (!writing_.valid()) return Done{};
  Status written = writing_.get();
  if (written) best_ = std::move(pending_);
  return written;
}

Status Keeper::still_there() const {
  const fs::path last = folder_ / "last.ckpt";
  const auto lost = [&](const std::string& cause) {
    return Error{"checkpoint", last.string(), cause, "look who has changed the run's folder"};
  };
  std::error_code error;
  const std::uintmax_t size = fs::file_size(last, error);
  if (error) return lost("was written and is gone: " + error.message());
  if (size != size_) return lost("was written and is another file now");
  return Done{};
}

void Keeper::resume(const std::vector<Best>& best) {
  best_.clear();
  std::error_code ignored;
  for (const Best& b : best)
    if (is_best_name(b.file) && fs::status(folder_ / b.file, ignored).type() != fs::file_type::not_found)
      best_.push_back(b);
}

}  // namespace sluice
