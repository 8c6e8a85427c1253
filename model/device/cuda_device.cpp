#include "model/device/cuda_device.hpp"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <atomic>

#include "model/train/convert_cuda.hpp"

namespace sluice {
namespace {

Status status(const std::string& what, cudaError_t code) {
  if (code == cudaSuccess) return Done{};
  return Error{"device", "cuda", what + ": " + cudaGetErrorString(code), "check the driver with nvidia-smi"};
}

struct CudaEvent final : Device::Event {
  ~CudaEvent() override {
    if (event) cudaEventDestroy(event);
  }
  cudaEvent_t event = nullptr;
};

cudaEvent_t raw(Device::Event& event) { return static_cast<CudaEvent&>(event).event; }

struct CudaCaptured final : Device::Captured {
  Status replay() override {
    try {
      graph.replay();
    } catch (const c10::Error& error) {
      return Error{"device", "cuda", error.what_without_backtrace(), ""};
    }
    return Done{};
  }
  at::cuda::CUDAGraph graph;
};

// cudaLaunchHostFunc takes a plain pointer: the function owns itself until it has been called.
void call_and_delete(void* function) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(function));
  (*owned)();
}

class CudaDevice final : public Device {
 public:
  // Torch's arithmetic goes to a stream of its own, not to the default one: that one cannot be captured.
  explicit CudaDevice(int index)
      : index_(index), compute_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)) {
    use();
    if (cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking) != cudaSuccess) copies_ = nullptr;
  }
  ~CudaDevice() override {
    use();
    if (copies_) cudaStreamDestroy(copies_);
  }
  [[nodiscard]] bool usable() const { return copies_ != nullptr; }

  void enter() override {
    use();
    c10::cuda::setCurrentCUDAStream(compute_);
  }
  [[nodiscard]] bool shares_host_memory() const override { return false; }

  [[nodiscard]] Result<std::shared_ptr<void>> allocate(std::size_t bytes) override {
    use();
    void* memory = nullptr;
    Status done = status("cannot allocate " + std::to_string(bytes) + " bytes of device memory",
                         cudaMalloc(&memory, bytes));
    if (!done) return done.error();
    allocated_ += bytes;
    return std::shared_ptr<void>(memory, [this, bytes](void* p) {
      use();
      cudaFree(p);
      allocated_ -= bytes;
    });
  }
  Status pin(void* memory, std::size_t bytes) override {
    use();
    return status("cannot page-lock " + std::to_string(bytes) + " bytes of host memory",
                  cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
  }
  void unpin(void* memory) override { cudaHostUnregister(memory); }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    use();
    return status("cannot copy to the device",
                  cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_));
  }
  Status after_copies(std::function<void()> then) override {
    use();
    auto owned = std::make_unique<std::function<void()>>(std::move(then));
    Status done = status("cannot follow a copy", cudaLaunchHostFunc(copies_, call_and_delete, owned.get()));
    if (done) (void)owned.release();
    return done;
  }
  void finish_copies() override {
    use();
    cudaStreamSynchronize(copies_);
  }

  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override {
    use();
    auto event = std::make_unique<CudaEvent>();
    Status done =
        status("cannot make an event", cudaEventCreateWithFlags(&event->event, cudaEventDisableTiming));
    if (!done) return done.error();
    return std::unique_ptr<Event>(std::move(event));
  }
  Status record(Event& event, Queue queue) override {
    use();
    return status("cannot record an event", cudaEventRecord(raw(event), stream(queue)));
  }
  Status wait(Event& event, Queue queue) override {
    use();
    return status("cannot wait for an event", cudaStreamWaitEvent(stream(queue), raw(event), 0));
  }

  Status convert(const Conversion& job) override {
    use();
    return status("cannot convert a batch",
                  static_cast<cudaError_t>(convert_cuda(job, stream(Queue::compute))));
  }

  // Thread-local: other threads copy and allocate meanwhile, and must not spoil the capture.
  [[nodiscard]] Result<std::unique_ptr<Captured>> capture(const std::function<Status()>& work) override {
    enter();
    auto captured = std::make_unique<CudaCaptured>();
    bool begun = false;
    try {
      // A recording allocates from a pool of its own: without this, what the steps before it have freed would
      // stay with the other pool, and a step's activations would be held twice.
      compute_.synchronize();
      c10::cuda::CUDACachingAllocator::emptyCache();
      captured->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      begun = true;
      Status done = work();
      begun = false;
      captured->graph.capture_end();
      if (!done) return done.error();
    } catch (const std::exception& error) {
      const std::string cause = error.what();
      if (begun) end_broken(captured->graph);
      return Error{"device", "cuda", cause.substr(0, cause.find('\n')), ""};
    }
    return std::unique_ptr<Captured>(std::move(captured));
  }

  [[nodiscard]] Memory memory() const override {
    use();
    Memory memory;
    if (cudaMemGetInfo(&memory.free, &memory.total) != cudaSuccess) return {};
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(index_));
    // What torch keeps for its next allocation is free for us.
    const auto held = static_cast<std::size_t>(stats.reserved_bytes[0].current);
    const auto used = static_cast<std::size_t>(stats.allocated_bytes[0].current);
    memory.free += held - used;
    memory.allocated = allocated_;
    memory.ours = used + memory.allocated;
    memory.peak = static_cast<std::size_t>(stats.allocated_bytes[0].peak) + memory.allocated;
    return memory;
  }
  [[nodiscard]] std::string bus_id() const override {
    char text[32] = {};
    return cudaDeviceGetPCIBusId(text, sizeof text, index_) == cudaSuccess ? text : "";
  }

 private:
  void use() const { (void)cudaSetDevice(index_); }  // the current device is each thread's own
  [[nodiscard]] cudaStream_t stream(Queue queue) const {
    return queue == Queue::copy ? copies_ : compute_.stream();
  }
  // The stream must leave its capture, whatever state that is in, or no later work would run.
  void end_broken(at::cuda::CUDAGraph& graph) const {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
      cudaGraph_t left = nullptr;
      cudaStreamEndCapture(compute_.stream(), &left);
      if (left) cudaGraphDestroy(left);
    }
    (void)cudaGetLastError();
  }

  int index_;
  c10::cuda::CUDAStream compute_;
  cudaStream_t copies_ = nullptr;
  std::atomic<std::size_t> allocated_{0};
};

}  // namespace

Result<std::shared_ptr<Device>> make_cuda_device(int index) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || index >= count)
    return Error{"device", "cuda:" + std::to_string(index),
                 "there are " + std::to_string(count) + " GPUs that can be used",
                 "start as many ranks on a host as it has GPUs"};
  try {
    auto device = std::make_shared<CudaDevice>(index);
    if (device->usable()) return std::shared_ptr<Device>(std::move(device));
    return Error{"device", "cuda:" + std::to_string(index), "cannot make a stream",
                 "check the driver with nvidia-smi"};
  } catch (const std::exception& error) {
    return Error{"device", "cuda:" + std::to_string(index), error.what(), ""};
  }
}

}  // namespace sluice
