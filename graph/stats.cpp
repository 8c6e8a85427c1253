#include "graph/stats.hpp"

#include <algorithm>
#include <bit>

namespace sluice {

void Histogram::add(Nanoseconds value) {
  const auto v = static_cast<std::uint64_t>(std::max<Nanoseconds>(value, 1));
  const int power = std::bit_width(v) - 1;
  const int part = power >= 2 ? static_cast<int>((v >> (power - 2)) & 3) : 0;
  buckets_[static_cast<std::size_t>(power * sub + part)].fetch_add(1, std::memory_order_relaxed);
}

Nanoseconds Histogram::percentile(double share) const {
  std::uint64_t total = 0;
  for (const auto& b : buckets_) total += b.load(std::memory_order_relaxed);
  if (total == 0) return 0;
  const double wanted = share * static_cast<double>(total);
  double seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen < wanted || seen == 0) continue;
    const double low =
        static_cast<double>(std::uint64_t{1} << (i / sub)) * (1 + static_cast<double>(i % sub) / sub);
    return static_cast<Nanoseconds>(low *
                                    (1 + 0.5 / (sub + static_cast<double>(i % sub))));  // the bucket's middle
  }
  return 0;
}

Nanoseconds NodeStats::begin() {
  queued_.fetch_sub(1, std::memory_order_relaxed);
  active_.fetch_add(1, std::memory_order_relaxed);
  return now_ns();
}

void NodeStats::end(Nanoseconds begun) {
  const Nanoseconds took = now_ns() - begun;
  service_.add(took);
  busy_.fetch_add(took, std::memory_order_relaxed);
  items_.fetch_add(1, std::memory_order_relaxed);
  active_.fetch_sub(1, std::memory_order_relaxed);
}

NodeFigures NodeStats::figures(Nanoseconds elapsed) const {
  NodeFigures f;
  f.name = name_;
  f.concurrency = concurrency_;
  f.items = items_.load(std::memory_order_relaxed);
  f.queued = std::max<std::int64_t>(queued_.load(std::memory_order_relaxed), 0);
  f.active = active_.load(std::memory_order_relaxed);
  f.busy = busy_.load(std::memory_order_relaxed);
  f.wait_bound = wait_bound_.load(std::memory_order_relaxed);
  f.wait_input = std::max<Nanoseconds>(elapsed * concurrency_ - f.busy - f.wait_bound, 0);
  f.p50 = service_.percentile(0.50);
  f.p99 = service_.percentile(0.99);
  return f;
}

}  // namespace sluice
