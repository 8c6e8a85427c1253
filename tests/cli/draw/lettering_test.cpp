#include "cli/draw/lettering.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace sluice;

namespace {

// The dots of a text on a canvas just as high as a letter.
std::string drawn(std::string_view text, int room = 1000) {
  Canvas canvas(40, letter_height, 255);
  write_text(canvas, 0, 0, room, 1, text, 0);
  std::string dots;
  for (std::size_t i = 0; i < canvas.rgb.size(); i += 3) dots += canvas.rgb[i] == 0 ? '#' : '.';
  return dots;
}

}  // namespace

TEST_CASE("lettering: an L is an L") {
  const std::string dots = drawn("l");
  for (std::size_t row = 0; row < 5; ++row) CHECK(dots.substr(row * 40, 4) == (row < 4 ? "#..." : "###."));
}

TEST_CASE("lettering: every character has its own shape, and both cases share one") {
  std::set<std::string> shapes;
  const std::string known = "0123456789abcdefghijklmnopqrstuvwxyz_-.,:/ ";
  for (const char c : known) shapes.insert(drawn({&c, 1}));
  CHECK(shapes.size() == known.size());
  CHECK(drawn("N01440764") == drawn("n01440764"));
}

TEST_CASE("lettering: what does not fit is left out, and nothing is written outside the canvas") {
  CHECK(drawn("ab", 7) == drawn("ab"));
  CHECK(drawn("ab", 6) == drawn("a"));
  Canvas small(5, 3, 9);
  write_text(small, 3, 1, 1000, 2, "mmm", 1);
  CHECK(small.rgb.size() == 45);
}
