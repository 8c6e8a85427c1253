// Small letters for pictures: three by five dots, enlarged. Letters have one case; what is not known is a
// box.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

struct Canvas {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // rows without gaps
  Canvas(int w, int h, std::uint8_t grey)
      : width(w), height(h), rgb(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3, grey) {}
};

constexpr int letter_width = 4, letter_height = 5;  // dots, with the gap to the next one

// Writes as much of the text as fits into `room` pixels from (x, y) on, each dot `scale` pixels wide.
void write_text(Canvas& canvas, int x, int y, int room, int scale, std::string_view text, std::uint8_t grey);

}  // namespace sluice
