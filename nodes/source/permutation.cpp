#include "nodes/source/permutation.hpp"

#include <algorithm>
#include <bit>

#include "base/random.hpp"

namespace sluice {
namespace {

std::uint64_t mix(std::uint64_t x) {  // the finaliser of MurmurHash3
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size) {
  half_bits_ = std::max(1u, (static_cast<unsigned>(std::bit_width(size > 0 ? size - 1 : 0)) + 1) / 2);
  Random random(seed, epoch, 0, Purpose::order);
  for (std::uint64_t& key : keys_) key = (std::uint64_t{random.bits()} << 32) | random.bits();
}

std::uint64_t Permutation::operator()(std::uint64_t at) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = at >> half_bits_, right = at & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix(right + key) & mask);
      left = right;
      right = next;
    }
    at = (left << half_bits_) | right;
  } while (at >= size_);
  return at;
}

}  // namespace sluice
