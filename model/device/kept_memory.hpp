// Large blocks of memory that stay with the process when they are freed, so that the next step does not pay
// the kernel for zeroed pages again. Blocks are cut from one range of addresses and neighbours that are free
// become one again, so memory of any size serves any other. In huge pages where the kernel has them.
//
// What it holds is at most the peak of what was in use and an eighth: beyond that, free blocks go back to the
// kernel, largest first. So phases of different shapes (training, validation) do not add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/guarded.hpp"

namespace sluice {

class KeptMemory {
 public:
  struct Usage {
    std::size_t in_use = 0;    // bytes of the blocks handed out, in whole pages
    std::size_t kept = 0;      // free bytes that the kernel may count as ours
    std::size_t peak = 0;      // the largest `in_use` so far
    std::size_t returned = 0;  // bytes given back to the kernel, in all
    std::size_t recent = 0;    // the largest `in_use` since the last mark()
  };

  // Takes addresses for `room` bytes, and no memory yet. Null where the kernel refuses (ulimit -v).
  [[nodiscard]] static std::unique_ptr<KeptMemory> reserve(std::size_t room);
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // These on any thread. Blocks start on a page; null where no room is left.
  [[nodiscard]] void* allocate(std::size_t bytes);
  void free(void* block);
  [[nodiscard]] bool owns(const void* block) const;
  [[nodiscard]] Usage usage() const;
  void mark();

 private:
  // Warm: touched since the kernel last had it, so it costs memory. Cold: addresses only.
  enum Kind { cold, warm };
  struct Extent {
    std::size_t size;
    Kind kind;
  };
  using Free = std::map<std::size_t, Extent>;  // by offset; no two neighbours of one kind

  KeptMemory(std::uint8_t* base, std::size_t room);
  void put(std::size_t offset, std::size_t size, Kind kind) REQUIRES(mutex_);
  Extent take(Free::iterator at) REQUIRES(mutex_);
  [[nodiscard]] std::size_t cut(std::size_t size) REQUIRES(mutex_);
  void give_back() REQUIRES(mutex_);

  std::uint8_t* const base_;
  const std::size_t room_;
  mutable Mutex mutex_;
  Free free_ GUARDED_BY(mutex_);
  // (size, offset) of `free_`, for each kind
  std::set<std::pair<std::size_t, std::size_t>> by_size_[2] GUARDED_BY(mutex_);
  std::unordered_map<std::size_t, std::size_t> used_ GUARDED_BY(mutex_);  // offset to size
  Usage usage_ GUARDED_BY(mutex_);
};

}  // namespace sluice
