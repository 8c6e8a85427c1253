#include "cli/draw/lettering.hpp"

#include <array>
#include <cctype>

namespace sluice {
namespace {

// Five rows of three dots, the leftmost dot is the highest bit; octal digits.
constexpr std::uint16_t box = 077577;

std::uint16_t glyph(char character) {
  static constexpr std::array<std::uint16_t, 10> digits{075557, 026227, 071747, 071717, 055711,
                                                        074717, 074757, 071122, 075757, 075717};
  static constexpr std::array<std::uint16_t, 26> letters{
      025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227, 011152, 055655, 044447, 057755,
      065555, 025552, 065644, 025563, 065655, 034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
  const auto c = static_cast<unsigned char>(character);
  if (std::isdigit(c)) return digits[static_cast<std::size_t>(c - '0')];
  if (std::isalpha(c)) return letters[static_cast<std::size_t>(std::tolower(c) - 'a')];
  switch (c) {
    case ' ':
      return 0;
    case '_':
      return 000007;
    case '-':
      return 000700;
    case '.':
      return 000002;
    case ',':
      return 000024;
    case ':':
      return 002020;
    case '/':
      return 011244;
    default:
      return box;
  }
}

void dot(Canvas& canvas, int x, int y, int scale, std::uint8_t grey) {
  for (int j = y; j < y + scale && j < canvas.height; ++j)
    for (int i = x; i < x + scale && i < canvas.width; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        canvas.rgb[(static_cast<std::size_t>(j) * static_cast<std::size_t>(canvas.width) +
                    static_cast<std::size_t>(i)) *
                       3 +
                   c] = grey;
}

}  // namespace

void write_text(Canvas& canvas, int x, int y, int room, int scale, std::string_view text, std::uint8_t grey) {
  for (const char character : text) {
    if (room < (letter_width - 1) * scale) return;
    const std::uint16_t dots = glyph(character);
    for (int row = 0; row < letter_height; ++row)
      for (int column = 0; column < letter_width - 1; ++column)
        if (dots >> (3 * (letter_height - 1 - row) + 2 - column) & 1)
          dot(canvas, x + column * scale, y + row * scale, scale, grey);
    x += letter_width * scale;
    room -= letter_width * scale;
  }
}

}  // namespace sluice
