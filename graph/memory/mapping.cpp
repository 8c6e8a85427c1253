#include "graph/memory/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace sluice {

std::size_t round_to_pages(std::size_t bytes) {
  static const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Mapping::Mapping(std::size_t bytes) : bytes_(round_to_pages(bytes)) {
  if (bytes_ == 0) return;
  void* at =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::uint8_t*>(at);
}

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Mapping::forget() {
  if (data_) madvise(data_, bytes_, MADV_DONTNEED);
}

}  // namespace sluice
