#include "run/data/slow_storage.hpp"

#include <algorithm>
#include <memory>

#include "base/guarded.hpp"

namespace sluice {

Nanoseconds SharedBandwidth::through(std::size_t bytes, Nanoseconds now) {
  const double takes = static_cast<double>(bytes) / megabytes_per_s_ * 1e3;  // 1 MB/s is 1000 ns a byte
  return free_at_ = std::max(free_at_, now) + static_cast<Nanoseconds>(takes);
}

Stages slowed(Stages stages, const StorageSpeed& speed) {
  struct Shared {
    explicit Shared(SharedBandwidth b) : bandwidth(b) {}
    Mutex mutex;
    SharedBandwidth bandwidth GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared;
  if (speed.megabytes_per_s > 0) shared = std::make_shared<Shared>(SharedBandwidth(speed.megabytes_per_s));
  const std::chrono::nanoseconds latency(static_cast<Nanoseconds>(speed.latency_ms * 1e6));
  const auto wait = [latency](const Stop& stop) {
    if (latency.count() > 0) stop.pause(latency);
  };
  stages.read = [wait, shared, inner = stages.read](const Ticket& t, const TakeChunks& take,
                                                    const Stop& stop) {
    wait(stop);
    std::size_t size = 0;
    Outcome outcome = inner(
        t,
        [&](std::size_t bytes) {
          const std::span<std::uint8_t* const> where = take(bytes);
          if (!where.empty()) size = bytes;
          return where;
        },
        stop);
    if (shared && size > 0) {
      Nanoseconds through = 0;
      {
        const Lock lock(shared->mutex);
        through = shared->bandwidth.through(size, now_ns());
      }
      stop.pause(std::chrono::nanoseconds(through - now_ns()));
    }
    return outcome;
  };
  stages.lane = [wait, inner = stages.lane](const Ticket& t, const std::optional<Error>& trouble, Slot& slot,
                                            const Stop& stop) {
    wait(stop);
    return inner(t, trouble, slot, stop);
  };
  return stages;
}

}  // namespace sluice
