#include "run/data/full_decode.hpp"

#include <span>

#include "nodes/jpeg/source.hpp"

namespace sluice {

struct FullDecoder::State {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  JpegSource source{};
  std::vector<std::uint8_t> file, pixels;
  ReadOptions read;

  explicit State(const ReadOptions& options) : read(options) {
    install(info, errors);
    jpeg_create_decompress(&info);
    install(info, source);
  }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // A longjmp leaves it without unwinding: what it resizes is not its own.
  bool decode(Pieces pieces) {
    if (setjmp(errors.jump) != 0) return false;
    rewind(source, pieces);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    const std::size_t stride =
        std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
    if (pixels.size() < stride * info.output_height) pixels.resize(stride * info.output_height);
    while (info.output_scanline < info.output_height) {
      JSAMPROW line = &pixels[info.output_scanline * stride];
      jpeg_read_scanlines(&info, &line, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

FullDecoder::FullDecoder(const ReadOptions& read) : state_(std::make_unique<State>(read)) {}
FullDecoder::~FullDecoder() = default;

Status FullDecoder::decode(const Source& from, std::size_t item) {
  State& s = *state_;
  const auto [read, piece] = fetch_whole(from, item, s.read, s.file);
  if (read.kind != Outcome::Kind::done) return read.error;
  if (s.decode({&piece, 1})) return Done{};
  jpeg_abort_decompress(&s.info);
  return Error{"decode", from.name(item), s.errors.message.data(), ""};
}

}  // namespace sluice
