#include "nodes/upload.hpp"

#include "model/device/nvml.hpp"

namespace sluice {

DeviceFeed::~DeviceFeed() {
  upload_.reset();  // waits for copies that still read the slots
  for (Slot* slot : pinned_) device_->unpin(slot->memory().data());
}

Status DeviceFeed::prepare(const std::vector<Slot*>& slots) {
  Result<std::shared_ptr<Device>> device = open_();
  if (!device) return device.error();
  device_ = std::move(*device);
  for (Slot* slot : slots) {
    if (Status done = device_->pin(slot->memory().data(), slot->memory().size()); !done) return done;
    pinned_.push_back(slot);
  }
  Result<Upload> upload = Upload::create(device_, {batch_, sample_, 3});
  if (!upload) return upload.error();
  const Lock lock(mutex_);
  upload_.emplace(std::move(*upload));
  return Done{};
}

Status DeviceFeed::upload(Batch& batch) {
  auto on_device = std::make_shared<OnDevice>();
  on_device->bad = batch.slot->take_bad();
  const Slot& slot = *batch.slot.get();
  HostBatch host{slot.place(0).data(), slot.label(0).data(), static_cast<int>(slot.places()), sample_,
                 nullptr};
  host.release = [lease = std::make_shared<SlotLease>(std::move(batch.slot))] { lease->release(); };
  Result<DeviceBatch> put = upload_->put(std::move(host));
  if (!put) return put.error();
  on_device->batch = std::move(*put);
  batch.device = std::move(on_device);
  return Done{};
}

std::function<Values()> DeviceFeed::gpu_figures() const {
  const std::string bus = device_->bus_id();
  const std::shared_ptr<Nvml> nvml = bus.empty() ? nullptr : Nvml::open(bus);
  return [nvml] { return gpu_values(nvml.get()); };
}

void DeviceFeed::cancel() {
  const Lock lock(mutex_);
  if (upload_) upload_->stop();
}

std::optional<Error> DeviceFeed::failure() {
  const Lock lock(mutex_);
  return upload_ ? upload_->failure() : std::nullopt;
}

}  // namespace sluice
