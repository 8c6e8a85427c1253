// Huffman codes of a JPEG as tables that are asked with the next bits: a whole symbol with its value for
// blocks that are decoded, as many symbols as fit for blocks that are only stepped over. Made for
// nodes/jpeg/huffman.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

namespace sluice::huffman {

constexpr int index_bits = 11;  // of the tables
constexpr std::size_t entries = std::size_t{1} << index_bits;

inline int extend(std::uint32_t bits, int size) {
  return static_cast<int>(bits) - (bits < (1u << (size - 1)) ? (1 << size) - 1 : 0);
}

// A canonical code, longest first where tables do not reach.
struct Codes {
  std::array<std::uint32_t, 17> end{};    // first 16-bit pattern past the codes of a length
  std::array<std::int32_t, 17> offset{};  // from a code to its symbol's place
  std::array<std::uint8_t, 256> symbols{};

  void make(const JHUFF_TBL& from) {
    std::uint32_t code = 0;
    int place = 0;
    for (std::size_t length = 1; length <= 16; ++length) {
      offset[length] = place - static_cast<int>(code);
      code += from.bits[length];
      place += from.bits[length];
      end[length] = code << (16 - length);
      code <<= 1;
    }
    std::copy_n(from.huffval, symbols.size(), symbols.begin());
  }

  // The length of the code that the 16 bits begin with; 17: of none.
  [[nodiscard]] int length(std::uint32_t bits) const {
    int length = 1;
    while (length <= 16 && bits >= end[static_cast<std::size_t>(length)]) ++length;
    return length;
  }
  [[nodiscard]] int symbol(std::uint32_t bits, int length) const {
    return symbols[static_cast<std::size_t>(static_cast<int>(bits >> (16 - length)) +
                                            offset[static_cast<std::size_t>(length)]) &
                   255];
  }
};

// What a table knows by the next bits: the whole symbol with its value, or its code alone.
struct Entry {
  std::int16_t value;  // of a whole symbol; otherwise how many bits of value follow the code
  std::uint8_t
      advance;          // coefficients, zeros before it included; 64 at the end of a block; 0: code is longer
  std::uint8_t length;  // bits; with `partial` set, those of the code
};
constexpr std::uint8_t partial = 0x80;
constexpr std::uint8_t block_end = 64;

inline int value_bits(int symbol, bool dc) { return dc ? symbol : symbol & 15; }
inline std::uint8_t advance_of(int symbol, bool dc) {
  if (dc) return 1;
  const bool ends_block = (symbol & 15) == 0 && symbol >> 4 != 15;
  return ends_block ? block_end : static_cast<std::uint8_t>((symbol >> 4) + 1);
}

// Several symbols at once, for blocks that nobody looks at.
struct Leap {
  std::uint8_t advance = 0;  // with `ends` set the last one ends the block, and counts as one coefficient
  std::uint8_t length = 0;   // 0: not even one symbol fits
};
constexpr std::uint8_t ends = 0x80;

struct Table {
  JHUFF_TBL source{};
  bool made = false;
  Codes codes;
  std::array<Entry, entries> entry{};
  std::array<Leap, entries> leap{};

  void make(const JHUFF_TBL& from, bool dc) {
    if (made && std::equal(from.bits, from.bits + 17, source.bits) &&
        std::equal(from.huffval, from.huffval + 256, source.huffval))
      return;
    source = from;
    made = true;
    codes.make(from);
    entry.fill({0, 0, 0});
    std::uint32_t code = 0;
    std::size_t place = 0;
    for (int length = 1; length <= index_bits; ++length, code <<= 1)
      for (int i = 0; i < from.bits[length]; ++i, ++code) enter(code, length, from.huffval[place++], dc);
    if (!dc)
      for (std::uint32_t i = 0; i < entries; ++i) leap[i] = make_leap(i);
  }

  // All entries that begin with this code.
  void enter(std::uint32_t code, int length, int symbol, bool dc) {
    const int size = value_bits(symbol, dc), spare = index_bits - length;
    Entry e{static_cast<std::int16_t>(size), advance_of(symbol, dc),
            static_cast<std::uint8_t>(length | partial)};
    Entry* to = &entry[code << spare];
    if (size > spare) {
      std::fill_n(to, std::size_t{1} << spare, e);
      return;
    }
    e.length = static_cast<std::uint8_t>(length + size);
    const std::size_t each = std::size_t{1} << (spare - size);
    for (std::uint32_t value = 0; value < 1u << size; ++value, to += each) {
      e.value = static_cast<std::int16_t>(size == 0 ? 0 : extend(value, size));
      std::fill_n(to, each, e);
    }
  }

  [[nodiscard]] Leap make_leap(std::uint32_t bits) const {
    Leap all;
    while (all.length < index_bits) {
      const Entry& e = entry[(bits << all.length) & (entries - 1)];
      if (e.advance == 0 || (e.length & partial) || all.length + e.length > index_bits) return all;
      if (e.advance != block_end && all.advance + e.advance > 64) return all;  // past any block
      all.length = static_cast<std::uint8_t>(all.length + e.length);
      if (e.advance == block_end) {
        all.advance = static_cast<std::uint8_t>((all.advance + 1) | ends);
        return all;
      }
      all.advance = static_cast<std::uint8_t>(all.advance + e.advance);
    }
    return all;
  }
};

}  // namespace sluice::huffman
