#include "graph/flow/stop.hpp"

namespace sluice {

void Stop::request() {
  {
    const Lock lock(mutex_);
    if (requested_.exchange(true, std::memory_order_acq_rel)) return;
  }
  changed_.notify_all();
  for (const auto& wake : wakers_) wake();
}

void Stop::fail(Error error) {
  {
    const Lock lock(mutex_);
    if (!failure_ && !requested_.load(std::memory_order_relaxed)) failure_ = std::move(error);
  }
  request();
}

std::optional<Error> Stop::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

bool Stop::pause(std::chrono::nanoseconds time) const {
  const Lock lock(mutex_);
  return !changed_.wait_for(mutex_, time, [this] { return requested_.load(std::memory_order_relaxed); });
}

}  // namespace sluice
