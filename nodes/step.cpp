#include "nodes/step.hpp"

#include <utility>

namespace sluice {
namespace {

// Stands for a batch's release until the end of the stage: the first call counts, and the end is one.
class ReleasedOnce {
 public:
  explicit ReleasedOnce(DeviceBatch& batch) : release_(std::exchange(batch.release, [this] { release(); })) {}
  ReleasedOnce(const ReleasedOnce&) = delete;
  ReleasedOnce& operator=(const ReleasedOnce&) = delete;
  ~ReleasedOnce() { release(); }

 private:
  void release() {
    if (const std::function<void()> release = std::exchange(release_, nullptr)) release();
  }
  std::function<void()> release_;
};

}  // namespace

Status StepStage::operator()(Batch& batch) {
  ++begun_;
  const Busy busy(*this);
  OnDevice on_device = std::move(DeviceFeed::of(batch));
  batch.device.reset();
  ReleasedOnce released(on_device.batch);
  return consume_(batch.number, on_device, batch.waited);
}

}  // namespace sluice
