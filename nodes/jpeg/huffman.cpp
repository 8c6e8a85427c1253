#include "nodes/jpeg/huffman.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <jpegint.h>

#include "nodes/jpeg/huffman_table.hpp"
#include "nodes/jpeg/library.hpp"

namespace sluice {
using namespace huffman;  // NOLINT(google-build-using-namespace)
namespace {

static_assert(LIBJPEG_TURBO_VERSION_NUMBER >= oldest_checked_libjpeg &&
                  LIBJPEG_TURBO_VERSION_NUMBER <= newest_checked_libjpeg,
              "the decode_mcu of this libjpeg-turbo was not checked: see nodes/jpeg/library.hpp");

constexpr std::size_t most_in_mcu =
    10 * (16 + 15 + 63 * (16 + 15)) / 8 + 64;  // bytes, with what a load reads ahead
constexpr std::size_t buffer_bytes = 16 * 1024;

// Position in a block by number in zigzag order. A symbol may point past the block: the end-of-block code
// does so on purpose and writes a zero where none was written, damaged data do as in libjpeg.
constexpr std::array<std::uint8_t, 144> natural_order = [] {
  std::array<std::uint8_t, 144> order{};
  order.fill(63);
  int row = 0, column = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    order[i] = static_cast<std::uint8_t>(row * 8 + column);
    const bool up = (row + column) % 2 == 0;
    if (up && column == 7)
      ++row;
    else if (up && row == 0)
      ++column;
    else if (!up && row == 7)
      ++column;
    else if (!up && column == 0)
      ++row;
    else
      row += up ? -1 : 1, column += up ? 1 : -1;
  }
  return order;
}();

std::uint64_t load_bits(const std::uint8_t* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

// The bits to come, leftmost first. At least 56 are there after fill().
struct Bits {
  std::uint64_t word;
  int count;
  const std::uint8_t* next;

  void fill() {
    word |= load_bits(next) >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  void drop(int n) {
    word <<= n;
    count -= n;
  }
  [[nodiscard]] std::size_t index() const { return static_cast<std::size_t>(word >> (64 - index_bits)); }
  [[nodiscard]] std::uint32_t top16() const { return static_cast<std::uint32_t>(word >> 48); }
  int take_value(int size) {
    const int value = extend(static_cast<std::uint32_t>(word >> (64 - size)), size);
    drop(size);
    return value;
  }
};

}  // namespace

struct HuffmanReader::State {
  std::array<Table, 2 * NUM_HUFF_TBLS> tables;  // DC, then AC
  // Of each block of an MCU.
  std::array<const Table*, D_MAX_BLOCKS_IN_MCU> dc{}, ac{};
  std::array<int, D_MAX_BLOCKS_IN_MCU> component{};
  std::array<int, MAX_COMPS_IN_SCAN> last{};
  int blocks = 0;
  std::uint32_t column = 0, columns = 0, first = 0, end = 0;  // of MCUs; those wanted

  // Image data without stuffing, a part at a time.
  std::array<std::uint8_t, buffer_bytes> buffer;
  Bits bits{};
  std::uint8_t* filled = nullptr;  // end of the data in the buffer
  bool last_part = false, after_ff = false;

  void begin(jpeg_decompress_struct& info, Columns wanted);
  void more(jpeg_decompress_struct& info);
  void unstuff(jpeg_decompress_struct& info);
  void decode(j_decompress_ptr info, JBLOCKROW* out);
  static void read_block(const Table& ac, Bits& in, JCOEF* block, bool& good);
  static void skip_block(const Table& ac, Bits& in, bool& good);
};

namespace {

[[noreturn]] void fail(j_decompress_ptr info, int code) {
  info->err->msg_code = code;
  info->err->error_exit(reinterpret_cast<j_common_ptr>(info));
  __builtin_unreachable();
}

// A symbol that no table has whole. Its value, and how far it goes.
Entry read_long(const Table& table, Bits& in, bool dc, bool& good) {
  Entry e = table.entry[in.index()];
  int size = e.value, length = e.length & ~partial;
  if (e.advance == 0) {
    length = table.codes.length(in.top16());
    if (length > 16) {
      good = false;
      return {0, block_end, 0};
    }
    const int symbol = table.codes.symbol(in.top16(), length);
    size = value_bits(symbol, dc);
    e.advance = advance_of(symbol, dc);
  }
  in.drop(length);
  e.value = size == 0 ? std::int16_t{0} : static_cast<std::int16_t>(in.take_value(size));
  return e;
}

bool is_whole(Entry e) { return e.advance != 0 && !(e.length & partial); }

}  // namespace

void HuffmanReader::State::read_block(const Table& ac, Bits& in, JCOEF* block, bool& good) {
  for (unsigned k = 1; k < 64;) {
    in.fill();
    // Three whole symbols take 33 bits at most; what is left is enough for a long one.
    for (int i = 0; i < 3 && k < 64; ++i) {
      Entry e = ac.entry[in.index()];
      if (is_whole(e)) [[likely]] {
        in.drop(e.length);
        k += e.advance;
        block[natural_order[k - 1]] = e.value;
      } else {
        e = read_long(ac, in, /*dc=*/false, good);
        k += e.advance;
        block[natural_order[k - 1]] = e.value;
        break;
      }
    }
  }
}

void HuffmanReader::State::skip_block(const Table& ac, Bits& in, bool& good) {
  for (unsigned k = 1; k < 64;) {
    in.fill();
    for (int i = 0; i < 3; ++i) {
      const Leap leap = ac.leap[in.index()];
      const unsigned to = k + (leap.advance & ~ends);
      if (leap.length != 0 && to <= 64) [[likely]] {
        in.drop(leap.length);
        k = to;
        if ((leap.advance & ends) || k == 64) return;
      } else {
        const Entry e = ac.entry[in.index()];
        if (is_whole(e)) {
          in.drop(e.length);
          k += e.advance;
        } else {
          k += read_long(ac, in, /*dc=*/false, good).advance;
        }
        break;
      }
    }
  }
}

void HuffmanReader::State::decode(j_decompress_ptr info, JBLOCKROW* out) {
  if (filled - bits.next < static_cast<std::ptrdiff_t>(most_in_mcu) && !last_part) more(*info);
  const bool wanted = out && column >= first && column < end;
  if (++column == columns) column = 0;
  Bits in = bits;
  bool good = true;
  for (int i = 0; i < blocks; ++i) {
    const auto at = static_cast<std::size_t>(i);
    in.fill();
    Entry e = dc[at]->entry[in.index()];
    if (is_whole(e))
      in.drop(e.length);
    else
      e = read_long(*dc[at], in, /*dc=*/true, good);
    int& value = last[static_cast<std::size_t>(component[at])];
    if (__builtin_add_overflow(value, static_cast<int>(e.value), &value)) fail(info, JERR_BAD_DCT_COEF);
    if (wanted) {
      JCOEF* block = *out[i];
      block[0] = static_cast<JCOEF>(value);
      read_block(*ac[at], in, block, good);
    } else {
      skip_block(*ac[at], in, good);
    }
  }
  bits = in;
  if (!good) fail(info, JWRN_HUFF_BAD_CODE);
  if (last_part && in.next - in.count / 8 > filled) fail(info, JWRN_HIT_MARKER);
}

void HuffmanReader::State::begin(jpeg_decompress_struct& info, Columns wanted) {
  bits = {0, 0, buffer.data()};
  filled = buffer.data();
  last_part = after_ff = false;
  last.fill(0);
  column = 0;
  columns = info.MCUs_per_row;
  // In a scan of one component an MCU is one block, whatever its sampling.
  const auto across = static_cast<JDIMENSION>((info.comps_in_scan == 1 ? 1 : info.max_h_samp_factor) *
                                              info.min_DCT_scaled_size);
  first = wanted.start / across;
  end = (wanted.start + wanted.width + across - 1) / across;
  blocks = info.blocks_in_MCU;
  for (int i = 0; i < info.comps_in_scan; ++i) {
    const jpeg_component_info& part = *info.cur_comp_info[i];
    tables[static_cast<std::size_t>(part.dc_tbl_no)].make(*info.dc_huff_tbl_ptrs[part.dc_tbl_no], true);
    tables[static_cast<std::size_t>(NUM_HUFF_TBLS + part.ac_tbl_no)].make(
        *info.ac_huff_tbl_ptrs[part.ac_tbl_no], false);
  }
  for (int i = 0; i < blocks; ++i) {
    const auto at = static_cast<std::size_t>(i);
    component[at] = info.MCU_membership[i];
    const jpeg_component_info& part = *info.cur_comp_info[component[at]];
    dc[at] = &tables[static_cast<std::size_t>(part.dc_tbl_no)];
    ac[at] = &tables[static_cast<std::size_t>(NUM_HUFF_TBLS + part.ac_tbl_no)];
  }
}

// Moves what is left to the front and fills up behind it.
void HuffmanReader::State::more(jpeg_decompress_struct& info) {
  heed_stop(info);
  const auto left = static_cast<std::size_t>(filled - bits.next);
  std::memmove(buffer.data(), bits.next, left);
  bits.next = buffer.data();
  filled = buffer.data() + left;
  while (!last_part && filled < buffer.data() + buffer.size() - most_in_mcu) unstuff(info);
  if (last_part) std::memset(filled, 0, most_in_mcu);
}

// One step: up to the next 0xFF, the end of a piece, or the room there is.
void HuffmanReader::State::unstuff(jpeg_decompress_struct& info) {
  jpeg_source_mgr& source = *info.src;
  if (source.bytes_in_buffer == 0 && !advance(*reinterpret_cast<JpegSource*>(&source))) {
    last_part = true;
    return;
  }
  const std::uint8_t* from = source.next_input_byte;
  std::size_t used = 0;
  if (after_ff) {
    const std::uint8_t code = *from;
    used = 1;
    after_ff = code == 0xFF;
    if (code == 0)
      *filled++ = 0xFF;
    else if (code != 0xFF)
      last_part = true;
  } else {
    const auto room = static_cast<std::size_t>(buffer.data() + buffer.size() - most_in_mcu - filled);
    const std::size_t length = std::min(room, source.bytes_in_buffer);
    const void* ff = std::memchr(from, 0xFF, length);
    const std::size_t plain =
        ff ? static_cast<std::size_t>(static_cast<const std::uint8_t*>(ff) - from) : length;
    std::memcpy(filled, from, plain);
    filled += plain;
    after_ff = ff != nullptr;
    used = plain + (ff ? 1 : 0);
  }
  source.next_input_byte += used;
  source.bytes_in_buffer -= used;
}

HuffmanReader::HuffmanReader() : HuffmanReader(loaded_libjpeg()) {}
HuffmanReader::HuffmanReader(std::string_view libjpeg_version)
    : state_(std::make_unique<State>()), fits_library_(is_checked_libjpeg(libjpeg_version)) {}
HuffmanReader::~HuffmanReader() = default;

std::size_t HuffmanReader::bytes() { return sizeof(State); }

bool HuffmanReader::take_over(jpeg_decompress_struct& info, Columns wanted) {
  const bool ours = fits_library_ && !info.progressive_mode && !info.arith_code &&
                    info.restart_interval == 0 && !jpeg_has_multiple_scans(&info);
  if (!ours) return false;
  state_->begin(info, wanted);
  info.client_data = state_.get();
  info.entropy->decode_mcu = [](j_decompress_ptr it, JBLOCKROW* out) -> boolean {
    static_cast<State*>(it->client_data)->decode(it, out);
    return TRUE;
  };
  return true;
}

}  // namespace sluice
