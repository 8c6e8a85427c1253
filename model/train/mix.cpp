#include "model/train/mix.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

double normal(Random& random) {  // Box-Muller; 1 - u is never 0
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// The logarithm of a draw from Gamma(shape, 1): for a small shape the draw itself would underflow. Marsaglia
// and Tsang, "A simple method for generating gamma variables", 2000.
double log_gamma_draw(Random& random, double shape) {
  if (shape < 1) return log_gamma_draw(random, shape + 1) + std::log(1 - random.uniform()) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return std::log(d * v);
  }
}

}  // namespace

double symmetric_beta(Random& random, double alpha) {
  const double a = log_gamma_draw(random, alpha), b = log_gamma_draw(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

Box cutmix_box(double lambda, int size, Random& random) {
  const auto bound = static_cast<std::uint32_t>(size);
  const int x = static_cast<int>(random.below(bound)), y = static_cast<int>(random.below(bound));
  const int half = static_cast<int>(0.5 * std::sqrt(1 - lambda) * size);
  const int left = std::max(x - half, 0), right = std::min(x + half, size);
  const int top = std::max(y - half, 0), bottom = std::min(y + half, size);
  return {left, top, right - left, bottom - top};
}

Mix choose_mix(const MixOptions& options, std::uint64_t seed, std::uint64_t batch, int size) {
  Mix mix;
  if (options.mixup <= 0 && options.cutmix <= 0) return mix;
  Random random(seed, 0, batch, Purpose::mix);
  const double whether = random.uniform(), which = random.uniform();
  if (whether >= options.share) return mix;
  const bool cut = options.mixup <= 0 || (options.cutmix > 0 && which < options.to_cutmix);
  const double lambda = symmetric_beta(random, cut ? options.cutmix : options.mixup);
  if (!cut) {
    mix.kind = Mix::Kind::mixup;
    mix.own = static_cast<float>(lambda);
    mix.other = 1 - mix.own;
    return mix;
  }
  mix.kind = Mix::Kind::cutmix;
  mix.box = cutmix_box(lambda, size, random);
  const double area = static_cast<double>(mix.box.width) * mix.box.height;
  const double all = static_cast<double>(size) * size;
  mix.own = static_cast<float>((all - area) / all);
  mix.other = static_cast<float>(area / all);
  return mix;
}

}  // namespace sluice
