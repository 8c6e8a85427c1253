// Host batches become device batches. On the CPU the host's memory is the device's, and the batch passes
// through; on a GPU it is copied into a ring of device slots, in a queue of its own, while the network
// computes. Free of torch: the device is behind model/device/device.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/sample_layout.hpp"
#include "model/device/device.hpp"

namespace sluice {

// `release` is called exactly once, from any thread, when the host memory may be overwritten.
struct HostBatch {
  const std::uint8_t* samples = nullptr;  // one after the other, and so the labels
  const void* labels = nullptr;
  int count = 0;
  SampleLayout sample;
  std::function<void()> release;
};

// In device memory. Its consumer calls `wait` before it queues work that reads the memory, and `release`
// exactly once, after it has queued the last such work; both on the consumer's thread.
struct DeviceBatch {
  const std::uint8_t* samples = nullptr;
  const void* labels = nullptr;
  int count = 0;
  SampleLayout sample;
  std::function<void()> wait;
  std::function<void()> release;
};

struct UploadOptions {
  int batch = 0;        // samples in the largest batch
  SampleLayout sample;  // of the largest samples
  int slots = 3;        // device slots; each takes batch * (sample.bytes() + label_bytes) of the device
};

class Upload {
 public:
  static Result<Upload> create(std::shared_ptr<Device> device, const UploadOptions& options);
  Upload(Upload&&) noexcept;
  Upload& operator=(Upload&&) noexcept;
  ~Upload();  // after the last batch was released

  // Waits while all device slots are in use (never on the CPU). On failure the host batch has been released.
  Result<DeviceBatch> put(HostBatch&& batch);
  // From any thread: a put that waits, and each one after, returns an error at once.
  void stop();
  // The first thing that went wrong on the device behind a batch that was given away.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  struct Ring;
  explicit Upload(std::shared_ptr<Ring> ring);
  std::shared_ptr<Ring> ring_;  // null where the host's memory is the device's
};

}  // namespace sluice
