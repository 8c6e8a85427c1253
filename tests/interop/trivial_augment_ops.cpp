// Runs single changes of TrivialAugmentWide for trivial_augment.py. On stdin, again and again: op, bin, sign,
// width, height as 32-bit numbers, then the pixels; on stdout: the magnitude as a double, then the pixels.
#include <cstdio>
#include <vector>

#include "nodes/image/trivial_augment.hpp"

int main() {
  using namespace sluice;
  std::int32_t head[5];
  while (std::fread(head, sizeof head, 1, stdin) == 1) {
    const TrivialChange change{static_cast<TrivialOp>(head[0]), head[1], head[2] != 0};
    const ImageSize size{head[3], head[4]};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) *
                                     static_cast<std::size_t>(size.height) * 3);
    if (std::fread(pixels.data(), 1, pixels.size(), stdin) != pixels.size()) return 1;
    std::vector<std::uint8_t> copy(pixels.size());
    apply(change, pixels.data(), size, copy);
    const double magnitude = change.magnitude();
    std::fwrite(&magnitude, sizeof magnitude, 1, stdout);
    std::fwrite(pixels.data(), 1, pixels.size(), stdout);
    std::fflush(stdout);
  }
}
