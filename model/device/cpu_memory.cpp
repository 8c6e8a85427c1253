#include "model/device/cpu_memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <unistd.h>

namespace sluice {
namespace {

constexpr std::size_t large = 128 * 1024;  // below, malloc keeps what is freed by itself

// Lives until the process ends: tensors in static storage may outlast everything else.
KeptMemory* kept = nullptr;

void release(void* block) {
  if (kept->owns(block))
    kept->free(block);
  else
    c10::GetDefaultCPUAllocator()->raw_deallocate(block);
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes >= large)
      if (void* block = kept->allocate(bytes)) return {block, block, &release, c10::DeviceType::CPU};
    return c10::GetDefaultCPUAllocator()->allocate(bytes);
  }
  // Also for what torch's own allocator gave: oneDNN's buffers come back through here.
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// More addresses than memory: blocks that lie badly take new ones.
std::size_t room() {
  return 4 * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void keep_cpu_memory() {
  static const bool done = [] {
    kept = KeptMemory::reserve(room()).release();
    if (kept) c10::SetCPUAllocator(new Allocator, /*priority=*/1);
    return kept != nullptr;
  }();
  (void)done;
}

void mark_cpu_memory() {
  if (kept) kept->mark();
}

KeptMemory::Usage cpu_memory() { return kept ? kept->usage() : KeptMemory::Usage{}; }

}  // namespace sluice
