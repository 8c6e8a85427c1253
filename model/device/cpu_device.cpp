#include <unistd.h>

#include <map>

#include "base/guarded.hpp"
#include "model/device/cpu_memory.hpp"
#include "model/device/cuda_device.hpp"
#include "pch/torch.hpp"

namespace sluice {
namespace {

void convert_plain(const Conversion& job, std::int64_t pixels) {
  at::parallel_for(0, pixels, /*grain_size=*/16384, [&](std::int64_t begin, std::int64_t end) {
    sluice::convert(job.pixels + 3 * begin, static_cast<float*>(job.out) + 3 * begin,
                    static_cast<std::size_t>(end - begin), job.affine);
  });
}

void convert_mixing(const Conversion& job, std::int64_t values) {
  at::parallel_for(
      0, static_cast<std::int64_t>(job.count), /*grain_size=*/1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          convert_mixed(job.pixels + i * values, job.pixels + (i ^ 1) * values,
                        static_cast<float*>(job.out) + i * values, job.size, job.affine, job.mix);
      });
}

// All work is done when a call returns, so that there is nothing to wait for.
class CpuDevice final : public Device {
 public:
  void enter() override {}
  [[nodiscard]] bool shares_host_memory() const override { return true; }

  [[nodiscard]] Result<std::shared_ptr<void>> allocate(std::size_t bytes) override {
    std::shared_ptr<void> block(::operator new (bytes, std::align_val_t{64}, std::nothrow),
                                [](void* p) { ::operator delete (p, std::align_val_t{64}); });
    if (block) return block;
    return Error{"device", "", "cannot allocate " + std::to_string(bytes) + " bytes", ""};
  }
  Status pin(void*, std::size_t) override { return Done{}; }
  void unpin(void*) override {}

  Status copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Done{};
  }
  Status after_copies(std::function<void()> then) override {
    then();
    return Done{};
  }
  void finish_copies() override {}

  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override { return std::make_unique<Event>(); }
  Status record(Event&, Queue) override { return Done{}; }
  Status wait(Event&, Queue) override { return Done{}; }

  Status convert(const Conversion& job) override {
    if (job.type != Output::fp32)
      return Error{"device", "cpu", "images become float here, and autocast does the rest", ""};
    const std::int64_t area = std::int64_t{job.size} * job.size;
    if (job.mix.kind == Mix::Kind::none)
      convert_plain(job, static_cast<std::int64_t>(job.count) * area);
    else
      convert_mixing(job, 3 * area);
    return Done{};
  }
  [[nodiscard]] Result<std::unique_ptr<Captured>> capture(const std::function<Status()>&) override {
    return Error{"device", "cpu", "a CPU has no launches to save", ""};
  }

  [[nodiscard]] Memory memory() const override {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const KeptMemory::Usage torchs = cpu_memory();
    return {page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)),
            page * static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)), torchs.in_use, torchs.peak, 0};
  }
};

Result<std::shared_ptr<Device>> make(const std::string& name, int index) {
  if (name == "cpu") return std::shared_ptr<Device>(std::make_shared<CpuDevice>());
#ifdef SLUICE_CUDA
  if (name == "cuda") return make_cuda_device(index);
#endif
  (void)index;
  return Error{"device", "model.device", "this build has no \"" + name + "\"",
               "build with `./sluice build --cuda`"};
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(const std::string& name, int index) {
  static Mutex mutex;
  static std::map<std::pair<std::string, int>, std::weak_ptr<Device>> opened GUARDED_BY(mutex);
  const Lock lock(mutex);
  std::weak_ptr<Device>& known = opened[{name, index}];
  if (std::shared_ptr<Device> device = known.lock()) return device;
  Result<std::shared_ptr<Device>> device = make(name, index);
  if (device) known = *device;
  return device;
}

}  // namespace sluice
