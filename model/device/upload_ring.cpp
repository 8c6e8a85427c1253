#include "model/device/upload_ring.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "base/guarded.hpp"

namespace sluice {

using Queue = Device::Queue;

struct Upload::Ring {
  struct Slot {
    std::shared_ptr<void> samples, labels;
    std::unique_ptr<Device::Event> copied;    // the network may read
    std::unique_ptr<Device::Event> consumed;  // the copy may overwrite
  };

  Ring(std::shared_ptr<Device> d, const UploadOptions& o)
      : device(std::move(d)),
        max_bytes(static_cast<std::size_t>(o.batch) * o.sample.bytes()),
        max_label_bytes(static_cast<std::size_t>(o.batch) * o.sample.label_bytes) {}
  ~Ring() { device->finish_copies(); }

  Status add_slot() {
    Slot slot;
    auto samples = device->allocate(max_bytes);
    if (!samples) return samples.error();
    auto labels = device->allocate(max_label_bytes);
    if (!labels) return labels.error();
    auto copied = device->make_event(), consumed = device->make_event();
    if (!copied) return copied.error();
    if (!consumed) return consumed.error();
    slots.push_back({std::move(*samples), std::move(*labels), std::move(*copied), std::move(*consumed)});
    const Lock lock(mutex);
    busy.push_back(false);
    return Done{};
  }

  // Null after stop().
  Slot* take() {
    const Lock lock(mutex);
    freed.wait(mutex, [&]() REQUIRES(mutex) { return stopped || !busy[next]; });
    if (stopped) return nullptr;
    Slot& slot = slots[next];
    busy[next] = true;
    next = (next + 1) % slots.size();
    return &slot;
  }

  void give_back(Slot& slot) {
    {
      const Lock lock(mutex);
      busy[static_cast<std::size_t>(&slot - slots.data())] = false;
    }
    freed.notify_all();
  }

  // Where the consumer could not tell when it is done with a slot, nothing may overwrite that any more.
  void fail(const Error& error) {
    {
      const Lock lock(mutex);
      if (!failure) failure = error;
      stopped = true;
    }
    freed.notify_all();
  }

  Error why_stopped() {
    const Lock lock(mutex);
    return failure.value_or(Error{"upload", "", "stopped", ""});
  }

  Status copy(Slot& slot, const HostBatch& batch, std::size_t bytes, std::size_t label_bytes) {
    Status done = device->wait(*slot.consumed, Queue::copy);
    if (done) done = device->copy(slot.samples.get(), batch.samples, bytes);
    if (done) done = device->copy(slot.labels.get(), batch.labels, label_bytes);
    if (done) done = device->record(*slot.copied, Queue::copy);
    if (done) done = device->after_copies(batch.release);
    return done;
  }

  const std::shared_ptr<Device> device;
  const std::size_t max_bytes, max_label_bytes;
  std::vector<Slot> slots;  // as many as create() made
  Mutex mutex;
  Condition freed;
  bool stopped GUARDED_BY(mutex) = false;
  std::optional<Error> failure GUARDED_BY(mutex);
  std::vector<bool> busy GUARDED_BY(mutex);  // of each slot
  std::size_t next GUARDED_BY(mutex) = 0;    // slots are used in turn
};

Result<Upload> Upload::create(std::shared_ptr<Device> device, const UploadOptions& options) {
  if (device->shares_host_memory()) return Upload(nullptr);
  auto ring = std::make_shared<Ring>(std::move(device), options);
  ring->slots.reserve(static_cast<std::size_t>(options.slots));
  for (int i = 0; i < options.slots; ++i)
    if (Status added = ring->add_slot(); !added) return added.error();
  return Upload(std::move(ring));
}

Result<DeviceBatch> Upload::put(HostBatch&& batch) {
  if (!ring_)
    return DeviceBatch{batch.samples, batch.labels, batch.count,
                       batch.sample,  [] {},        std::move(batch.release)};
  const auto count = static_cast<std::size_t>(batch.count);
  const std::size_t bytes = count * batch.sample.bytes(), label_bytes = count * batch.sample.label_bytes;
  if (bytes > ring_->max_bytes || label_bytes > ring_->max_label_bytes) {
    batch.release();
    return Error{"upload", "",
                 "a batch of " + std::to_string(batch.count) + " samples of " + batch.sample.text() +
                     " is larger than a device slot",
                 ""};
  }
  Ring::Slot* slot = ring_->take();
  if (slot == nullptr) {
    batch.release();
    return ring_->why_stopped();
  }
  if (Status copied = ring_->copy(*slot, batch, bytes, label_bytes); !copied) {
    ring_->device->finish_copies();  // what was queued may still read the host's memory
    batch.release();
    ring_->give_back(*slot);
    return copied.error();
  }
  // The ring outlives its batches: they hold it.
  const auto use = [slot, ring = ring_](Status (Device::*what)(Device::Event&, Queue), Device::Event& event) {
    if (Status done = (ring->device.get()->*what)(event, Queue::compute); !done) ring->fail(done.error());
  };
  return DeviceBatch{static_cast<const std::uint8_t*>(slot->samples.get()),
                     slot->labels.get(),
                     batch.count,
                     batch.sample,
                     [use, slot] { use(&Device::wait, *slot->copied); },
                     [use, slot, ring = ring_] {
                       use(&Device::record, *slot->consumed);
                       ring->give_back(*slot);
                     }};
}

void Upload::stop() {
  if (!ring_) return;
  {
    const Lock lock(ring_->mutex);
    ring_->stopped = true;
  }
  ring_->freed.notify_all();
}

std::optional<Error> Upload::failure() const {
  if (!ring_) return std::nullopt;
  const Lock lock(ring_->mutex);
  return ring_->failure;
}

Upload::Upload(std::shared_ptr<Ring> ring) : ring_(std::move(ring)) {}
Upload::Upload(Upload&&) noexcept = default;
Upload& Upload::operator=(Upload&&) noexcept = default;
Upload::~Upload() = default;

}  // namespace sluice
