#include "nodes/jpeg/frame.hpp"

#include <algorithm>
#include <string>

#include "graph/figures/nodes.hpp"

namespace sluice {
namespace {

// A file's bytes one after the other, across its pieces; -1 behind the last.
class Cursor {
 public:
  explicit Cursor(Pieces pieces) : pieces_(pieces) {}

  int next() {
    if (!find()) return -1;
    return pieces_[piece_][at_++];
  }
  int next_two() {
    const int high = next(), low = next();
    return low < 0 ? -1 : high << 8 | low;
  }
  void skip(std::size_t bytes) {
    while (bytes > 0 && find()) {
      const std::size_t part = std::min(bytes, pieces_[piece_].size() - at_);
      at_ += part;
      bytes -= part;
    }
  }

 private:
  bool find() {
    while (piece_ < pieces_.size() && at_ == pieces_[piece_].size()) ++piece_, at_ = 0;
    return piece_ < pieces_.size();
  }

  Pieces pieces_;
  std::size_t piece_ = 0, at_ = 0;
};

// Past stray bytes and fill bytes; -1 at the end.
int next_marker(Cursor& in) {
  for (;;) {
    int byte = in.next();
    while (byte >= 0 && byte != 0xFF) byte = in.next();
    while (byte == 0xFF) byte = in.next();
    if (byte != 0) return byte;
  }
}

bool stands_alone(int marker) { return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8); }
bool is_frame(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

}  // namespace

std::optional<ImageSize> claimed_size(Pieces pieces) {
  constexpr int end_of_image = 0xD9, start_of_scan = 0xDA;
  Cursor in(pieces);
  if (in.next_two() != 0xFFD8) return std::nullopt;
  for (int marker = next_marker(in); marker >= 0; marker = next_marker(in)) {
    if (marker == end_of_image || marker == start_of_scan) return std::nullopt;
    if (stands_alone(marker)) continue;
    const int length = in.next_two();
    if (is_frame(marker)) {
      in.skip(1);  // bits per sample
      const int height = in.next_two(), width = in.next_two();
      if (width < 0) return std::nullopt;
      return ImageSize{width, height};
    }
    if (length > 2) in.skip(static_cast<std::size_t>(length - 2));
  }
  return std::nullopt;
}

Status within_pixels(ImageSize size, std::uint64_t max_pixels) {
  if (static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height) <= max_pixels)
    return Done{};
  return Error{name_of(NodeId::decode), "",
               std::to_string(size.width) + " x " + std::to_string(size.height) +
                   " pixels, more than data.max_pixels (" + std::to_string(max_pixels) + ")",
               "raise data.max_pixels or list it in data.exclude"};
}

}  // namespace sluice
