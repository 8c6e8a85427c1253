#include "base/checksum.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace sluice;

namespace {
std::uint64_t sum_of(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

std::vector<std::byte> sample(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i + 7 * i);
  return bytes;
}
}  // namespace

TEST_CASE("checksum: every single bit matters") {
  for (std::size_t size : {1, 8, 31, 32, 33, 200}) {
    std::vector<std::byte> bytes = sample(size);
    std::set<std::uint64_t> seen{sum_of(bytes)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      seen.insert(sum_of(bytes));
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    CHECK(seen.size() == 8 * size + 1);
  }
}

TEST_CASE("checksum: every length of zeros has its own") {
  const std::vector<std::byte> zeros(300);
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size <= zeros.size(); ++size) seen.insert(sum_of(std::span(zeros).first(size)));
  CHECK(seen.size() == zeros.size() + 1);
}

TEST_CASE("checksum: does not depend on how the bytes are cut") {
  const std::vector<std::byte> bytes = sample(1000);
  for (std::size_t cut : {1, 7, 32, 33, 64, 999}) {
    Checksum sum;
    std::span<const std::byte> left(bytes);
    while (!left.empty()) {
      const std::size_t taken = std::min(cut, left.size());
      sum.add(left.first(taken));
      left = left.subspan(taken);
    }
    CHECK(sum.value() == sum_of(bytes));
  }
}

TEST_CASE("checksum: swapped blocks and lanes are seen") {
  std::vector<std::byte> bytes = sample(96);
  const std::uint64_t whole = sum_of(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 32, bytes.begin() + 32);
  CHECK(sum_of(bytes) != whole);
  bytes = sample(96);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  CHECK(sum_of(bytes) != whole);
}
