#include "run/plan/advice.hpp"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

// From the largest to the smallest.
constexpr std::array networks{"resnet101", "resnet50", "resnet34", "resnet18"};

// mixup and cutmix work on pairs.
std::int64_t batch_step(const Config& c) { return c.augment.mixup > 0 || c.augment.cutmix > 0 ? 2 : 1; }

// The largest number of steps below `too_many` of which `fits` holds, 0 if it holds of none. It is cut in
// halves: what is found fits, and one step more does not.
template <class Holds>
std::int64_t most(std::int64_t too_many, const Holds& fits) {
  std::int64_t few = 0;
  while (too_many - few > 1) {
    const std::int64_t middle = few + (too_many - few) / 2;
    (fits(middle) ? few : too_many) = middle;
  }
  return few;
}

// Up to `largest`; 0 if none fits.
std::int64_t fitting_batch(Config config, std::int64_t largest, const Fits& fits) {
  const std::int64_t step = batch_step(config);
  return step * most(largest / step + 1, [&](std::int64_t steps) {
           config.train.batch = steps * step;
           return fits(config);
         });
}

std::string set(const std::string& key, const std::string& value) { return "--set " + key + "=" + value; }

// In steps of 32 pixels, which the networks like best; with the smallest batch.
std::int64_t fitting_size(Config config, const Fits& fits) {
  constexpr std::int64_t step = 32;
  config.train.batch = batch_step(config);
  return step * most((config.data.image_size + step - 1) / step, [&](std::int64_t steps) {
           config.data.image_size = steps * step;
           return fits(config);
         });
}

// The largest of the smaller networks that fits, with its batch.
std::string smaller_network(Config config, const Fits& fits) {
  const auto* const now = std::ranges::find(networks, config.model.arch);
  if (now == networks.end()) return "";
  for (const auto* arch = now + 1; arch != networks.end(); ++arch) {
    config.model.arch = *arch;
    if (const std::int64_t batch = fitting_batch(config, config.train.batch, fits); batch > 0)
      return set("model.arch", *arch) + " " + set("train.batch", std::to_string(batch)) + " fits";
  }
  return "";
}

}  // namespace

std::string what_to_change(const Config& config, const Fits& fits) {
  std::string hint;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) hint += (hint.empty() ? "" : ", or ") + text;
  };
  if (const std::int64_t batch = fitting_batch(config, config.train.batch - 1, fits); batch > 0)
    add(set("train.batch", std::to_string(batch)) +
        " is the largest that fits (train.accumulate keeps the total batch)");
  Config recomputed = config;
  recomputed.model.recompute = true;
  if (!config.model.recompute && fits(recomputed))
    add(set("model.recompute", "true") + " fits (for about a third more arithmetic)");
  if (!hint.empty()) return hint;
  if (const std::int64_t size = fitting_size(config, fits); size > 0)
    add(set("train.batch", std::to_string(batch_step(config))) + " " +
        set("data.image_size", std::to_string(size)) + " fits");
  add(smaller_network(config, fits));
  return hint;
}

}  // namespace sluice
