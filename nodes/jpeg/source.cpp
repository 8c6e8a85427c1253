#include "nodes/jpeg/source.hpp"

#include <algorithm>
#include <string_view>

namespace sluice {
namespace {

// A coefficient can be refined some ten times; files with hundreds of scans only exist to cost time.
constexpr int most_scans = 500;

std::uint64_t blocks_of(const jpeg_component_info& part) {
  return std::uint64_t{part.width_in_blocks} * part.height_in_blocks;
}

// An empty scan has a few bytes and still goes over every block of its components. Each is counted as it
// begins, before it costs anything, from the headers alone: the verdict is the file's own.
bool too_much_work(const jpeg_decompress_struct& info, JpegSource& source) {
  if (source.scan == info.input_scan_number) return false;
  source.scan = info.input_scan_number;
  std::uint64_t image = 0;
  for (int i = 0; i < info.num_components; ++i) image += blocks_of(info.comp_info[i]);
  for (int i = 0; i < info.comps_in_scan; ++i) source.blocks += blocks_of(*info.cur_comp_info[i]);
  return source.blocks > most_blocks(image);
}

// Bytes that libjpeg gets at a time, so that large files in one piece are looked after as well as others.
constexpr std::size_t most_at_once = 16 * 1024;

[[noreturn]] void fail(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

[[noreturn]] void fail(j_common_ptr info, const char* message) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.msg_code = 0;
  std::snprintf(errors->message.data(), errors->message.size(), "%s", message);
  std::longjmp(errors->jump, 1);
}

// libjpeg goes on after a warning, with pixels that it made up if data were lost. Those are errors here. The
// others only say that something around the image data is odd (an unknown JFIF version, stray bytes between
// segments): the pixels are right, and Pillow shows the image without a word.
bool pixels_lost(int warning) {
  switch (warning) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_BOGUS_ICC:
      return false;
    default:
      return true;
  }
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && pixels_lost(info->err->msg_code)) fail(info);
}

void on_progress(j_common_ptr info) {
  auto& image = *reinterpret_cast<j_decompress_ptr>(info);
  if (image.input_scan_number > most_scans) fail(info, "more than 500 scans");
  if (too_much_work(image, *reinterpret_cast<JpegSource*>(image.src)))
    fail(info, "too many scans for its size");
  heed_stop(image);
}

boolean on_empty(j_decompress_ptr info) {
  heed_stop(*info);
  if (!advance(*reinterpret_cast<JpegSource*>(info->src)))
    fail(reinterpret_cast<j_common_ptr>(info), "truncated: the file ends before the image does");
  return TRUE;
}

void on_skip(j_decompress_ptr info, long count) {
  jpeg_source_mgr& source = *info->src;
  for (auto left = static_cast<std::size_t>(std::max(count, 0L)); left > 0;) {
    if (source.bytes_in_buffer == 0) on_empty(info);
    const std::size_t part = std::min(left, source.bytes_in_buffer);
    source.next_input_byte += part;
    source.bytes_in_buffer -= part;
    left -= part;
  }
}

}  // namespace

void install(jpeg_decompress_struct& info, JpegErrors& errors) {
  errors.base = {};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr common) { fail(common); };
  errors.base.emit_message = on_message;
  errors.base.output_message = [](j_common_ptr) {};
}

void install(jpeg_decompress_struct& info, JpegSource& source) {
  source.base.init_source = [](j_decompress_ptr) {};
  source.base.fill_input_buffer = on_empty;
  source.base.skip_input_data = on_skip;
  source.base.resync_to_restart = jpeg_resync_to_restart;
  source.base.term_source = [](j_decompress_ptr) {};
  info.src = &source.base;
  source.progress.progress_monitor = on_progress;
  info.progress = &source.progress;
}

void rewind(JpegSource& source, Pieces pieces) {
  source.pieces = pieces;
  source.next = 0;
  source.rest = {};
  source.scan = 0;
  source.blocks = 0;
  source.base.next_input_byte = nullptr;
  source.base.bytes_in_buffer = 0;
}

bool advance(JpegSource& source) {
  while (source.rest.empty() && source.next < source.pieces.size())
    source.rest = source.pieces[source.next++];
  const auto part = source.rest.first(std::min(source.rest.size(), most_at_once));
  source.rest = source.rest.subspan(part.size());
  source.base.next_input_byte = part.data();
  source.base.bytes_in_buffer = part.size();
  return !part.empty();
}

void heed_stop(jpeg_decompress_struct& info) {
  const auto& source = *reinterpret_cast<const JpegSource*>(info.src);
  if (source.stop_asked && (*source.stop_asked)()) fail(reinterpret_cast<j_common_ptr>(&info), "stopped");
}

bool has_end_marker(const JpegSource& source) {
  // From the end, where it is nearly always found at once. Inside the image data 0xFF is never followed by
  // 0xD9.
  bool d9_follows = false;
  const auto found_in = [&](std::span<const std::uint8_t> part) {
    for (std::size_t i = part.size(); i-- > 0;) {
      if (part[i] == 0xFF && d9_follows) return true;
      d9_follows = part[i] == 0xD9;
    }
    return false;
  };
  for (std::size_t piece = source.pieces.size(); piece > source.next; --piece)
    if (found_in(source.pieces[piece - 1])) return true;
  if (found_in(source.rest)) return true;
  return found_in({source.base.next_input_byte, source.base.bytes_in_buffer});
}

std::string not_a_jpeg(Pieces pieces) {
  std::array<char, 64> first{};
  std::size_t length = 0;
  for (const auto piece : pieces) {
    const std::size_t part = std::min(piece.size(), first.size() - length);
    std::copy_n(piece.begin(), part, first.begin() + length);
    length += part;
  }
  const std::string_view head(first.data(), length);
  if (head.empty()) return "empty file";
  const auto starts = [&head](std::string_view text) { return head.starts_with(text); };
  if (starts("\xFF\xD8\xFF")) return {};

  const auto named = [](std::string_view what) {
    return "not a JPEG (starts with " + std::string(what) + ")";
  };
  if (starts("\x89PNG")) return named("PNG signature");
  if (starts("GIF87a") || starts("GIF89a")) return named("GIF signature");
  if (starts("RIFF") && head.size() >= 12 && head.substr(8, 4) == "WEBP") return named("WebP signature");
  if (starts(std::string_view("II*\0", 4)) || starts(std::string_view("MM\0*", 4)))
    return named("TIFF signature");
  if (starts("BM")) return named("BMP signature");
  if (std::ranges::all_of(head, [](char c) { return c == 0; })) return "not a JPEG (starts with zero bytes)";
  const auto is_text = [](char c) { return (c >= 32 && c < 127) || c == '\n' || c == '\r' || c == '\t'; };
  if (std::ranges::all_of(head, is_text)) {
    const std::size_t first = head.find_first_not_of(" \r\n\t");
    return named(first != std::string::npos && head[first] == '<' ? "HTML or XML text" : "plain text");
  }
  if (starts("\xFF\xD8")) return "damaged JPEG (nothing sensible after its first marker)";
  return "not a JPEG (unknown signature)";
}

}  // namespace sluice
