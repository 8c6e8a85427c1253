#include "nodes/upload.hpp"

#include <utility>

#ifdef SLUICE_CUDA
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>
#endif

namespace sluice {

#ifdef SLUICE_CUDA

namespace {

Error failure(const std::string& what, cudaError_t code) {
  return Error{"upload", "", what + ": " + cudaGetErrorString(code), "check the driver with nvidia-smi"};
}

// cudaLaunchHostFunc takes a plain pointer: the function owns itself until it has been called.
void call_and_delete(void* release) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(release));
  (*owned)();
}

}  // namespace

struct Upload::Ring {
  struct Slot {
    std::uint8_t* pixels = nullptr;
    std::int32_t* labels = nullptr;
    cudaEvent_t copied = nullptr;    // on the copy stream: the network may read
    cudaEvent_t consumed = nullptr;  // on the compute stream: the copy may overwrite
    bool busy = false;
  };

  std::mutex mutex;
  std::condition_variable freed;
  bool stopped = false;
  std::vector<Slot> slots;
  std::size_t next = 0;  // slots are used in turn
  std::size_t max_bytes = 0;
  int max_count = 0;
  cudaStream_t copies = nullptr;

  cudaError_t allocate(const UploadOptions& options) {
    max_count = options.batch;
    max_bytes = std::size_t{3} * options.batch * options.image_size * options.image_size;
    slots.resize(options.slots);
    cudaError_t code = cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
    for (Slot& slot : slots) {
      if (code == cudaSuccess) code = cudaMalloc(&slot.pixels, max_bytes);
      if (code == cudaSuccess) code = cudaMalloc(&slot.labels, sizeof(std::int32_t) * options.batch);
      if (code == cudaSuccess) code = cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming);
      if (code == cudaSuccess) code = cudaEventCreateWithFlags(&slot.consumed, cudaEventDisableTiming);
    }
    return code;
  }

  ~Ring() {
    if (copies) cudaStreamSynchronize(copies);
    for (Slot& slot : slots) {
      cudaFree(slot.pixels);
      cudaFree(slot.labels);
      if (slot.copied) cudaEventDestroy(slot.copied);
      if (slot.consumed) cudaEventDestroy(slot.consumed);
    }
    if (copies) cudaStreamDestroy(copies);
  }

  // Null after stop().
  Slot* take() {
    std::unique_lock lock(mutex);
    freed.wait(lock, [&] { return stopped || !slots[next].busy; });
    if (stopped) return nullptr;
    Slot& slot = slots[next];
    next = (next + 1) % slots.size();
    slot.busy = true;
    return &slot;
  }

  void give_back(Slot& slot) {
    {
      const std::lock_guard lock(mutex);
      slot.busy = false;
    }
    freed.notify_all();
  }

  // An event that was never recorded counts as complete, so a slot's first use waits for nothing.
  cudaError_t copy(Slot& slot, const HostBatch& batch, std::size_t bytes) {
    cudaError_t code = cudaStreamWaitEvent(copies, slot.consumed, 0);
    if (code == cudaSuccess)
      code = cudaMemcpyAsync(slot.pixels, batch.pixels, bytes, cudaMemcpyHostToDevice, copies);
    if (code == cudaSuccess)
      code = cudaMemcpyAsync(slot.labels, batch.labels, sizeof(std::int32_t) * batch.count,
                             cudaMemcpyHostToDevice, copies);
    if (code == cudaSuccess) code = cudaEventRecord(slot.copied, copies);
    return code;
  }
};

Result<Upload> Upload::create(const UploadOptions& options) {
  if (options.device == "cpu") return Upload(nullptr);
  auto ring = std::make_shared<Ring>();
  if (const cudaError_t code = ring->allocate(options); code != cudaSuccess)
    return failure("cannot set up " + std::to_string(options.slots) + " device slots of " +
                       std::to_string(ring->max_bytes) + " bytes",
                   code);
  return Upload(std::move(ring));
}

Result<DeviceBatch> Upload::put(HostBatch&& batch) {
  if (!ring_)
    return DeviceBatch{batch.pixels, batch.labels, batch.count, batch.size, [] {}, std::move(batch.release)};
  const std::size_t bytes = std::size_t{3} * batch.count * batch.size * batch.size;
  if (bytes > ring_->max_bytes || batch.count > ring_->max_count) {
    batch.release();
    return Error{"upload", "",
                 "a batch of " + std::to_string(batch.count) + " images at " + std::to_string(batch.size) +
                     " px is larger than a device slot",
                 ""};
  }
  Ring::Slot* slot = ring_->take();
  if (slot == nullptr) {
    batch.release();
    return Error{"upload", "", "stopped", ""};
  }
  cudaError_t code = ring_->copy(*slot, batch, bytes);
  auto owned = std::make_unique<std::function<void()>>(std::move(batch.release));
  if (code == cudaSuccess) code = cudaLaunchHostFunc(ring_->copies, call_and_delete, owned.get());
  if (code != cudaSuccess) {
    cudaStreamSynchronize(ring_->copies);  // what was queued may still read the host's memory
    (*owned)();
    ring_->give_back(*slot);
    return failure("cannot copy a batch to the device", code);
  }
  (void)owned.release();
  // The ring outlives its batches: they hold it.
  return DeviceBatch{slot->pixels,
                     slot->labels,
                     batch.count,
                     batch.size,
                     [slot] { cudaStreamWaitEvent(c10::cuda::getCurrentCUDAStream(), slot->copied, 0); },
                     [slot, ring = ring_] {
                       cudaEventRecord(slot->consumed, c10::cuda::getCurrentCUDAStream());
                       ring->give_back(*slot);
                     }};
}

void Upload::stop() {
  if (!ring_) return;
  {
    const std::lock_guard lock(ring_->mutex);
    ring_->stopped = true;
  }
  ring_->freed.notify_all();
}

Status pin(const std::string& device, void* memory, std::size_t bytes) {
  if (device == "cpu") return Done{};
  const cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterDefault);
  if (code == cudaSuccess) return Done{};
  return failure("cannot page-lock " + std::to_string(bytes) + " bytes of host memory", code);
}

void unpin(const std::string& device, void* memory) {
  if (device != "cpu") cudaHostUnregister(memory);
}

#else

struct Upload::Ring {};

Result<Upload> Upload::create(const UploadOptions& options) {
  if (options.device == "cpu") return Upload(nullptr);
  return Error{"upload", "model.device", "this build has no CUDA", "build with `./sluice build --cuda`"};
}

Result<DeviceBatch> Upload::put(HostBatch&& batch) {
  return DeviceBatch{batch.pixels, batch.labels, batch.count, batch.size, [] {}, std::move(batch.release)};
}

void Upload::stop() {}
Status pin(const std::string&, void*, std::size_t) { return Done{}; }
void unpin(const std::string&, void*) {}

#endif

Upload::Upload(std::shared_ptr<Ring> ring) : ring_(std::move(ring)) {}
Upload::Upload(Upload&&) noexcept = default;
Upload& Upload::operator=(Upload&&) noexcept = default;
Upload::~Upload() = default;

}  // namespace sluice
