#include "model/device/kept_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr std::size_t nowhere = SIZE_MAX;

}  // namespace

std::unique_ptr<KeptMemory> KeptMemory::reserve(std::size_t room) {
  room = room / page * page;
  void* at = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, room, MADV_HUGEPAGE);  // where it fails, small pages do
  return std::unique_ptr<KeptMemory>(new KeptMemory(static_cast<std::uint8_t*>(at), room));
}

KeptMemory::KeptMemory(std::uint8_t* base, std::size_t room) : base_(base), room_(room) {
  put(0, room, cold);
}

KeptMemory::~KeptMemory() { munmap(base_, room_); }

void* KeptMemory::allocate(std::size_t bytes) {
  if (bytes == 0 || bytes > room_) return nullptr;
  const std::size_t size = (bytes + page - 1) / page * page;
  const Lock lock(mutex_);
  const std::size_t offset = cut(size);
  if (offset == nowhere) return nullptr;
  used_.emplace(offset, size);
  usage_.in_use += size;
  usage_.peak = std::max(usage_.peak, usage_.in_use);
  usage_.recent = std::max(usage_.recent, usage_.in_use);
  give_back();
  return base_ + offset;
}

void KeptMemory::free(void* block) {
  const Lock lock(mutex_);
  const auto found = used_.find(static_cast<std::size_t>(static_cast<std::uint8_t*>(block) - base_));
  usage_.in_use -= found->second;
  put(found->first, found->second, warm);
  used_.erase(found);
}

bool KeptMemory::owns(const void* block) const {
  const auto* at = static_cast<const std::uint8_t*>(block);
  return at >= base_ && at < base_ + room_;
}

KeptMemory::Usage KeptMemory::usage() const {
  const Lock lock(mutex_);
  return usage_;
}

void KeptMemory::mark() {
  const Lock lock(mutex_);
  usage_.recent = usage_.in_use;
}

// The smallest free extent that holds it, touched ones first. An untouched one is entered from the touched
// memory before it, if that is free: it is too small by itself, and would only lie idle.
std::size_t KeptMemory::cut(std::size_t size) {
  for (const Kind kind : {warm, cold}) {
    const auto fits = by_size_[kind].lower_bound({size, 0});
    if (fits == by_size_[kind].end()) continue;
    const auto at = free_.find(fits->second);
    std::size_t offset = at->first;
    const std::size_t end = offset + at->second.size;
    if (kind == cold && at != free_.begin()) {
      const auto before = std::prev(at);
      if (before->first + before->second.size == offset) {
        offset = before->first;
        take(before);
      }
    }
    take(at);
    if (offset + size < end) put(offset + size, end - offset - size, kind);
    return offset;
  }
  return nowhere;
}

void KeptMemory::put(std::size_t offset, std::size_t size, Kind kind) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size && next->second.kind == kind)
    size += take(next++).size;
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.size == offset && before->second.kind == kind) {
      offset = before->first;
      size += take(before).size;
    }
  }
  free_.emplace(offset, Extent{size, kind});
  by_size_[kind].emplace(size, offset);
  if (kind == warm) usage_.kept += size;
}

KeptMemory::Extent KeptMemory::take(Free::iterator at) {
  const Extent extent = at->second;
  by_size_[extent.kind].erase({extent.size, at->first});
  if (extent.kind == warm) usage_.kept -= extent.size;
  free_.erase(at);
  return extent;
}

void KeptMemory::give_back() {
  const std::size_t most = usage_.peak + usage_.peak / 8;
  while (usage_.in_use + usage_.kept > most) {
    const std::size_t offset = std::prev(by_size_[warm].end())->second;
    const std::size_t size = take(free_.find(offset)).size;
    madvise(base_ + offset, size, MADV_DONTNEED);
    usage_.returned += size;
    put(offset, size, cold);
  }
}

}  // namespace sluice
