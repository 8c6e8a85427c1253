// A 64-bit checksum that keeps up with a disk and is sure to change when bits within one 8-byte word change;
// wider damage is seen with very high probability. No protection against malice. A formula of our own, which
// checkpoint files hold: it stays, whatever libraries offer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

class Checksum {
 public:
  void add(std::span<const std::byte> bytes);  // how the bytes are cut into calls does not matter
  [[nodiscard]] std::uint64_t value() const;

 private:
  static constexpr std::size_t block = 32;
  void mix(const std::byte* bytes);

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::array<std::byte, block> rest_{};
  std::uint64_t length_ = 0;
};

}  // namespace sluice
