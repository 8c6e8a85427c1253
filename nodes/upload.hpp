// The host's side of upload: page-locks the slots, turns each filled batch into one on the device, and gives
// its slot back as soon as it may be overwritten.
#pragma once

#include <optional>
#include <vector>

#include "base/guarded.hpp"
#include "base/values.hpp"
#include "graph/flow/stages.hpp"
#include "model/device/upload_ring.hpp"

namespace sluice {

// What upload makes of a batch.
struct OnDevice {
  DeviceBatch batch;
  std::vector<Bad> bad;
};

class DeviceFeed {
 public:
  using Open = std::function<Result<std::shared_ptr<Device>>()>;  // see open_device

  DeviceFeed(Open open, std::int64_t batch, const SampleLayout& sample)
      : open_(std::move(open)), batch_(static_cast<int>(batch)), sample_(sample) {}
  DeviceFeed(const DeviceFeed&) = delete;
  DeviceFeed& operator=(const DeviceFeed&) = delete;
  ~DeviceFeed();  // before the slots go

  Status prepare(const std::vector<Slot*>& slots);
  Status upload(Batch& batch);  // on upload's thread; leaves an OnDevice
  void cancel();                // wakes an upload that waits; on any thread
  // What the device failed at after its batch was given away, where no upload came to tell it.
  [[nodiscard]] std::optional<Error> failure();

  // Of the GPU, for records; nothing on the CPU. After prepare.
  [[nodiscard]] std::function<Values()> gpu_figures() const;

  [[nodiscard]] static OnDevice& of(Batch& batch) { return *static_cast<OnDevice*>(batch.device.get()); }

 private:
  Open open_;
  int batch_;
  SampleLayout sample_;
  std::shared_ptr<Device> device_;
  std::vector<Slot*> pinned_;
  Mutex mutex_;                   // the log's thread may cancel() while prepare() is at work
  std::optional<Upload> upload_;  // upload()'s thread begins after prepare()
};

}  // namespace sluice
