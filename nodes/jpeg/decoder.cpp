#include "nodes/jpeg/decoder.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/reuse.hpp"
#include "graph/figures/nodes.hpp"
#include "nodes/jpeg/huffman.hpp"
#include "nodes/jpeg/resample.hpp"
#include "nodes/jpeg/source.hpp"

namespace sluice {
namespace {

constexpr const char* hint = "replace the file or list it in data.exclude";

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// One of our two rows.
std::size_t row_bytes(const jpeg_decompress_struct& info) {
  return round_up(std::size_t{info.image_width} * (info.num_components == 4 ? 4 : 3) + Resampler::row_padding,
                  64);
}

// libjpeg's buffers, judged from the frame and scan headers: whole-image coefficients if more than one scan
// contributes, a row of blocks with its context per component, one row group upsampled, and our own rows.
std::size_t scratch_for(const jpeg_decompress_struct& info, bool multi_scan) {
  constexpr std::size_t tables_and_pools = 96 << 10;  // Huffman and range tables, pool remainders
  std::size_t bytes = tables_and_pools + HuffmanReader::bytes() + 2 * row_bytes(info);
  const std::size_t width = round_up(info.image_width, static_cast<std::size_t>(info.max_h_samp_factor)) + 64;
  for (int i = 0; i < info.num_components; ++i) {
    const jpeg_component_info& part = info.comp_info[i];
    const auto h = static_cast<std::size_t>(part.h_samp_factor),
               v = static_cast<std::size_t>(part.v_samp_factor);
    const std::size_t across = round_up(part.width_in_blocks, h), down = round_up(part.height_in_blocks, v);
    if (multi_scan) bytes += across * down * sizeof(JBLOCK) + down * sizeof(void*);
    bytes += (across * DCTSIZE + 64) * v * (DCTSIZE + 2);
    bytes += width * static_cast<std::size_t>(info.max_v_samp_factor);
  }
  return bytes;
}

// A progressive file may end before its last refinement. libjpeg then smooths blocks with the help of their
// neighbours, which it would not have at the edges of a crop. Call after jpeg_start_decompress.
bool is_smoothed(const jpeg_decompress_struct& info) {
  if (!info.coef_bits) return false;
  for (int i = 0; i < info.num_components; ++i)
    if (std::any_of(info.coef_bits[i] + 1, info.coef_bits[i] + DCTSIZE2, [](int bits) { return bits != 0; }))
      return true;
  return false;
}

// Restricts decoding to the columns that the box needs; returns those that will be in a row.
Columns crop_columns(jpeg_decompress_struct& info, Box box) {
  // At the edges of a cropped row fancy upsampling has no neighbour and repeats itself. It reaches two pixels
  // far, so with a few more on each side the pixels inside are those of a full decode.
  constexpr int margin = 4;
  const int unit = info.max_h_samp_factor * info.min_DCT_scaled_size;
  const int left = std::max(box.x - margin, 0);
  const int right = (box.x + box.width + margin + unit - 1) / unit * unit;
  Columns c{static_cast<JDIMENSION>(left), 0};
  c.width = std::min(static_cast<JDIMENSION>(right), info.output_width) - c.start;
  jpeg_crop_scanline(&info, &c.start, &c.width);
  // libjpeg-turbo 2.1 forgets here that a component may come out of its transform larger than others.
  for (int i = 0; i < info.num_components; ++i) {
    jpeg_component_info& part = info.comp_info[i];
    const auto across = static_cast<std::size_t>(part.h_samp_factor * part.DCT_scaled_size);
    const auto most = static_cast<std::size_t>(info.max_h_samp_factor * info.min_DCT_scaled_size);
    part.downsampled_width = static_cast<JDIMENSION>((info.output_width * across + most - 1) / most);
  }
  return c;
}

// As Pillow does it: four components are taken as inverted whether or not an Adobe marker says so.
void inverted_cmyk_to_rgb(const std::uint8_t* in, int pixels, std::uint8_t* out) {
  for (int i = 0; i < pixels; ++i, in += 4, out += 3) {
    const int light = in[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - in[c]) * light + 128;
      out[c] = static_cast<std::uint8_t>(std::max(light - ((product + (product >> 8)) >> 8), 0));
    }
  }
}

}  // namespace

// Lives on the heap and stays there: libjpeg keeps pointers into it.
struct JpegDecoder::State {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  JpegSource source{};
  HuffmanReader huffman;
  Resampler resampler;
  std::vector<std::uint8_t> rows;  // two
  bool opened = false;
  bool resampling = true;

  State() { renew(); }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // A new libjpeg object for each image, in a microsecond. jpeg_abort_decompress would keep the tables of the
  // image before, and a file without tables of its own would be decoded with those.
  void renew() {
    jpeg_destroy_decompress(&info);
    opened = false;
    install(info, errors);
    if (!attempt([this] { jpeg_create_decompress(&info); })) throw std::bad_alloc();
    install(info, source);
  }

  // Runs calls into libjpeg; false if one of them failed. A longjmp leaves `body` without unwinding: nothing
  // in it may own anything.
  template <class Body>
  bool attempt(Body&& body) {
    if (setjmp(errors.jump) != 0) return false;
    body();
    return true;
  }

  // No memory to be had is no fault of the image: taking it for a bad one would change the batch.
  Error failure() {
    jpeg_abort_decompress(&info);
    if (errors.base.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    return {name_of(NodeId::decode), "", errors.message.data(), hint};
  }

  void read_rows();
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Result<JpegHeader> JpegDecoder::open(Pieces pieces) {
  State& state = *state_;
  state.renew();
  if (std::string cause = not_a_jpeg(pieces); !cause.empty())
    return Error{name_of(NodeId::decode), "", std::move(cause), hint};

  rewind(state.source, pieces);
  if (!state.attempt([&] { jpeg_read_header(&state.info, TRUE); })) return state.failure();
  // libjpeg's arithmetic decoder goes on with zeros behind the data's end, without a word, because sound
  // files leave their last zeros out. A file cut short would pass for a sound one.
  if (state.info.arith_code) {
    jpeg_abort_decompress(&state.info);
    return Error{name_of(NodeId::decode), "", "arithmetic coding, which is not supported",
                 "convert the file with `jpegtran` or list it in data.exclude"};
  }
  const int components = state.info.num_components;
  if (components != 1 && components != 3 && components != 4) {
    jpeg_abort_decompress(&state.info);
    return Error{name_of(NodeId::decode), "",
                 "has " + std::to_string(components) + " colour components, not 1, 3 or 4", hint};
  }
  if (!has_end_marker(state.source)) {
    jpeg_abort_decompress(&state.info);
    return Error{name_of(NodeId::decode), "", "truncated: the file has no end-of-image marker", hint};
  }
  state.opened = true;
  const bool multi_scan = jpeg_has_multiple_scans(&state.info) != FALSE;
  return JpegHeader{{static_cast<int>(state.info.image_width), static_cast<int>(state.info.image_height)},
                    components,
                    state.info.progressive_mode != FALSE,
                    multi_scan,
                    scratch_for(state.info, multi_scan)};
}

// Two rows at a time, as the resampler likes them and libjpeg makes them.
void JpegDecoder::State::read_rows() {
  const Box box = resampler.source();
  jpeg_start_decompress(&info);
  const std::size_t bytes = rows.size() / 2;
  JSAMPROW targets[2] = {rows.data(), rows.data() + bytes};
  JDIMENSION start = 0;
  if (is_smoothed(info)) {
    while (info.output_scanline < static_cast<JDIMENSION>(box.y)) jpeg_read_scanlines(&info, targets, 1);
  } else {
    const Columns columns = crop_columns(info, box);
    start = columns.start;
    huffman.take_over(info, columns);
    if (box.y > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(box.y));
  }
  const std::size_t offset =
      (static_cast<std::size_t>(box.x) - start) * static_cast<std::size_t>(info.output_components);
  for (int y = 0; y < box.height;) {
    const auto wanted = static_cast<JDIMENSION>(std::min(box.height - y, 2));
    for (JDIMENSION have = 0; have < wanted;)
      have += jpeg_read_scanlines(&info, targets + have, wanted - have);
    const std::uint8_t* pixels[2] = {targets[0] + offset, targets[1] + offset};
    if (info.output_components == 4) {
      // Three bytes are written for four read, so the row can be its own target.
      for (JDIMENSION i = 0; i < wanted; ++i) {
        inverted_cmyk_to_rgb(pixels[i], box.width, targets[i]);
        pixels[i] = targets[i];
      }
    }
    if (resampling) resampler.push(pixels[0], wanted == 2 ? pixels[1] : nullptr);
    y += static_cast<int>(wanted);
  }
}

Status JpegDecoder::decode(const View& view, JpegQuality quality, std::uint8_t* out, std::size_t stride,
                           std::size_t scratch_limit, FunctionRef<bool()> stop_asked) {
  State& state = *state_;
  if (!std::exchange(state.opened, false))
    return Error{name_of(NodeId::decode), "", "decode() without an opened image", "call open() first"};
  jpeg_decompress_struct& info = state.info;
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(quality.reduce);
  info.mem->max_memory_to_use = static_cast<long>(std::max<std::size_t>(scratch_limit, 1));
  const ImageSize size{static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
  state.resampler.start(view, size, quality.reduce, out, stride, best_kernels(quality.weights));
  fit(state.rows, 2 * row_bytes(info));
  state.source.stop_asked = &stop_asked;
  const bool whole = state.attempt([&] { state.read_rows(); });
  state.source.stop_asked = nullptr;
  if (!whole) return state.failure();
  jpeg_abort_decompress(&info);
  return Done{};
}

void JpegDecoder::without_resampling(bool without) { state_->resampling = !without; }

std::size_t JpegDecoder::held_bytes() const {
  return state_->rows.capacity() + state_->resampler.held_bytes();
}

void JpegDecoder::release() {
  std::vector<std::uint8_t>().swap(state_->rows);
  state_->resampler.release();
}

}  // namespace sluice
