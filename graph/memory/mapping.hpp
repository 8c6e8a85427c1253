// Zeroed memory mapped straight from the kernel: page-aligned, counted to the byte, resident only once
// touched, and given back whole. Batch slots and read-ahead live in such mappings, never on the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(std::size_t bytes);  // throws std::bad_alloc
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::uint8_t> bytes() const { return {data_, bytes_}; }

  // Gives the pages back to the kernel; the memory stays usable and reads as zero.
  void forget();

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

[[nodiscard]] std::size_t round_to_pages(std::size_t bytes);

}  // namespace sluice
