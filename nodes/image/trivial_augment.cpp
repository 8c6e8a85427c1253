#include "nodes/image/trivial_augment.hpp"

#include <cmath>

#include "nodes/image/colour.hpp"
#include "nodes/image/warp.hpp"

namespace sluice {
namespace {

// torch.linspace: single precision, counted from the nearer end. torch fuses multiplication and addition on
// processors that can, and that decides whether a translation of 15.999999 is one of 15 or 16 pixels; exact
// arithmetic, rounded once, is the same everywhere.
double spread(float first, float last, int bin) {
  constexpr int steps = TrivialChange::bins - 1;
  const double step = (last - first) / static_cast<float>(steps);
  return static_cast<float>(bin < TrivialChange::bins / 2 ? first + step * bin : last - step * (steps - bin));
}

double strength(TrivialOp op, int bin) {
  switch (op) {
    case TrivialOp::identity:
    case TrivialOp::auto_contrast:
    case TrivialOp::equalize:
      return 0;
    case TrivialOp::translate_x:
    case TrivialOp::translate_y:
      return spread(0, 32, bin);
    case TrivialOp::rotate:
      return spread(0, 135, bin);
    case TrivialOp::posterize:
      return 8 - std::nearbyint(bin / 5.0);
    case TrivialOp::solarize:
      return spread(255, 0, bin);
    default:
      return spread(0, 0.99f, bin);
  }
}

bool has_sign(TrivialOp op) { return op >= TrivialOp::shear_x && op <= TrivialOp::sharpness; }

}  // namespace

double TrivialChange::magnitude() const {
  const double value = strength(op, bin);
  return negative && has_sign(op) ? -value : value;
}

TrivialChange draw_trivial(Random& random) {
  TrivialChange change;
  change.op = static_cast<TrivialOp>(random.below(TrivialChange::ops));
  change.bin = static_cast<int>(random.below(TrivialChange::bins));
  change.negative = random.below(2) == 1;
  return change;
}

void apply(const TrivialChange& change, std::uint8_t* pixels, ImageSize size, std::span<std::uint8_t> copy) {
  const double m = change.magnitude();
  const int whole = static_cast<int>(m);
  switch (change.op) {
    case TrivialOp::identity:
      return;
    case TrivialOp::shear_x:
      return warp(pixels, size, shear_x(m), copy);
    case TrivialOp::shear_y:
      return warp(pixels, size, shear_y(m), copy);
    case TrivialOp::translate_x:
      return warp(pixels, size, translation(whole, 0), copy);
    case TrivialOp::translate_y:
      return warp(pixels, size, translation(0, whole), copy);
    case TrivialOp::rotate:
      return warp(pixels, size, rotation(m, size), copy);
    case TrivialOp::brightness:
      return brightness(pixels, size, 1 + m);
    case TrivialOp::saturation:
      return saturation(pixels, size, 1 + m);
    case TrivialOp::contrast:
      return contrast(pixels, size, 1 + m);
    case TrivialOp::sharpness:
      return sharpness(pixels, size, 1 + m, copy);
    case TrivialOp::posterize:
      return posterize(pixels, size, whole);
    case TrivialOp::solarize:
      return solarize(pixels, size, m);
    case TrivialOp::auto_contrast:
      return auto_contrast(pixels, size);
    case TrivialOp::equalize:
      return equalize(pixels, size);
  }
}

}  // namespace sluice
