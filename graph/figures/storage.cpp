#include "graph/figures/storage.hpp"

#include <algorithm>
#include <bit>

namespace sluice {
namespace {

// Reads with few others beside them against those with many. Where storage is shared, time grows as they do;
// from page-cache hits to slow reads it jumps once, further or not at all, and that says nothing.
bool time_grows_with_load(const StorageFigures& f) {
  std::size_t top = 0;
  for (std::size_t i = 0; i < f.by_load.size(); ++i)
    if (f.by_load[i].reads >= 4) top = i;
  if (top < 2) return false;
  StorageFigures::Level few;
  for (std::size_t i = 0; i + 2 <= top; ++i) {
    few.reads += f.by_load[i].reads;
    few.seconds += f.by_load[i].seconds;
    few.at_once += f.by_load[i].at_once;
  }
  const StorageFigures::Level& many = f.by_load[top];
  if (few.reads < 2 || few.seconds <= 0) return false;
  const double slower = many.seconds / many.reads / (few.seconds / few.reads);
  const double more = many.at_once / many.reads / (few.at_once / few.reads);
  const StorageFigures::Level& next = f.by_load[top - 1];
  const bool still_grows = next.reads == 0 || many.seconds / many.reads > 1.15 * next.seconds / next.reads;
  return slower > std::max(1.6, 0.35 * more) && slower < 4 * more && still_grows;
}

// Most of the time of a file comes with its bytes.
bool time_grows_with_size(const StorageFigures& f) {
  if (f.files < 16) return false;
  const double mean_bytes = f.bytes / f.files, mean_seconds = f.seconds / f.files;
  const double spread = f.bytes_squared / f.files - mean_bytes * mean_bytes;
  if (spread < 0.01 * mean_bytes * mean_bytes) return false;  // all of a size
  const double per_byte = (f.bytes_seconds / f.files - mean_bytes * mean_seconds) / spread;
  return per_byte * mean_bytes > 0.6 * mean_seconds;
}

}  // namespace

StorageFigures StorageFigures::since(const StorageFigures& before) const {
  StorageFigures f = *this;
  f.files -= before.files;
  f.bytes -= before.bytes;
  f.seconds -= before.seconds;
  f.bytes_squared -= before.bytes_squared;
  f.bytes_seconds -= before.bytes_seconds;
  return f;
}

bool bandwidth_bound(const StorageFigures& f) {
  if (f.more_helps) return !*f.more_helps;
  return time_grows_with_load(f) || time_grows_with_size(f);
}

void StorageProfile::add(std::size_t bytes, Nanoseconds took, unsigned at_once) {
  const auto b = static_cast<double>(bytes), s = static_cast<double>(took) * 1e-9;
  const auto level = static_cast<std::size_t>(std::bit_width(at_once) - 1);
  const Lock lock(mutex_);
  sums_.files += 1;
  sums_.bytes += b;
  sums_.seconds += s;
  sums_.bytes_squared += b * b;
  sums_.bytes_seconds += b * s;
  StorageFigures::Level& l = sums_.by_load[std::min(level, StorageFigures::levels - 1)];
  l.reads += 1;
  l.seconds += s;
  l.at_once += at_once;
}

void StorageProfile::tried(std::optional<bool> more_helps) {
  const Lock lock(mutex_);
  sums_.more_helps = more_helps;
}

StorageFigures StorageProfile::figures() const {
  const Lock lock(mutex_);
  return sums_;
}

}  // namespace sluice
