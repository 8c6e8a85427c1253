#include "graph/figures/stats.hpp"

#include <algorithm>
#include <bit>

namespace sluice {
namespace {
constexpr std::size_t sub = TimeCounts::sub;
}

Nanoseconds TimeCounts::percentile(double share) const {
  std::uint64_t total = 0;
  for (const std::uint32_t b : buckets) total += b;
  if (total == 0) return 0;
  const double wanted = share * static_cast<double>(total);
  double seen = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen < wanted || seen == 0) continue;
    const double low =
        static_cast<double>(std::uint64_t{1} << (i / sub)) * (1 + static_cast<double>(i % sub) / sub);
    return static_cast<Nanoseconds>(low *
                                    (1 + 0.5 / (sub + static_cast<double>(i % sub))));  // the bucket's middle
  }
  return 0;
}

TimeCounts TimeCounts::since(const TimeCounts& before) const {
  TimeCounts difference;
  for (std::size_t i = 0; i < buckets.size(); ++i) difference.buckets[i] = buckets[i] - before.buckets[i];
  return difference;
}

void Histogram::add(Nanoseconds value) {
  const auto v = static_cast<std::uint64_t>(std::max<Nanoseconds>(value, 1));
  const auto power = static_cast<std::size_t>(std::bit_width(v) - 1);
  const std::size_t part = power >= 2 ? (v >> (power - 2)) & 3 : 0;
  buckets_[power * sub + part].fetch_add(1, std::memory_order_relaxed);
}

TimeCounts Histogram::counts() const {
  TimeCounts c;
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    c.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
  return c;
}

// In this order: whoever sees the end of a wait in the total sees that it no longer lasts.
Nanoseconds WaitTime::sum(Nanoseconds now) const {
  const Nanoseconds total = total_.load(std::memory_order_acquire);
  const Nanoseconds since = since_.load(std::memory_order_acquire);
  return total + (since != 0 ? std::max<Nanoseconds>(now - since, 0) : 0);
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

void NodeStats::resize(unsigned concurrency, Nanoseconds elapsed) {
  const Lock lock(sized_);
  missing_ += (Nanoseconds{concurrency} - Nanoseconds{concurrency_}) * elapsed;
  concurrency_ = concurrency;
}

NodeFigures NodeStats::figures(Nanoseconds elapsed) const {
  NodeFigures f;
  f.id = id_;
  {
    const Lock lock(sized_);
    f.concurrency = concurrency_;
    f.available = std::max<Nanoseconds>(elapsed * f.concurrency - missing_, 0);
  }
  f.items = items_.load(std::memory_order_relaxed);
  f.queued = std::max<std::int64_t>(queued_.load(std::memory_order_relaxed), 0);
  f.active = active_.load(std::memory_order_relaxed);
  f.busy = busy_.load(std::memory_order_relaxed);
  const Nanoseconds now = now_ns();
  f.wait_bound = bound_.sum(now);
  f.wait_input = measured_.load(std::memory_order_relaxed)
                     ? input_.sum(now)
                     : std::max<Nanoseconds>(f.available - f.busy - f.wait_bound, 0);
  f.times = service_.counts();
  f.p50 = f.times.percentile(0.50);
  f.p99 = f.times.percentile(0.99);
  return f;
}

}  // namespace sluice
