#include "base/checksum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice {
namespace {

constexpr std::uint64_t odd1 = 0x9e3779b97f4a7c15, odd2 = 0xd1b54a32d192ed03;

// Invertible in either argument, so two different words never lead to the same state from the same one. The
// two multiplications spread a flipped bit so widely that a flip in a later word does not undo it.
std::uint64_t absorb(std::uint64_t state, std::uint64_t word) {
  return std::rotl(state + word * odd1, 31) * odd2;
}

}  // namespace

void Checksum::mix(const std::byte* bytes) {
  std::array<std::uint64_t, 4> words;
  std::memcpy(words.data(), bytes, block);
  for (std::size_t i = 0; i < 4; ++i) lanes_[i] = absorb(lanes_[i], words[i]);
}

void Checksum::add(std::span<const std::byte> bytes) {
  const std::size_t held = length_ % block;
  length_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(block - held, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < block) return;
    mix(rest_.data());
  }
  for (; bytes.size() >= block; bytes = bytes.subspan(block)) mix(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Checksum::value() const {
  Checksum last = *this;
  const std::size_t held = length_ % block;
  std::fill(last.rest_.begin() + static_cast<std::ptrdiff_t>(held), last.rest_.end(), std::byte{0});
  last.mix(last.rest_.data());
  std::uint64_t state = length_;
  for (const std::uint64_t lane : last.lanes_) {
    state = absorb(state, lane);
    state ^= state >> 31;
  }
  return state;
}

}  // namespace sluice
