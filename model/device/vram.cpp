#include "model/device/vram.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"

namespace sluice {

void add_figures(DeviceUse& use, const Device::Memory& memory) {
  const auto rest = [](std::size_t of, std::size_t parts) { return of > parts ? of - parts : 0; };
  use.total = memory.total;
  use.free = rest(memory.free + memory.ours, memory.peak);
  use.input += memory.allocated;
  use.activations = rest(memory.peak, use.weights + use.gradients + use.optimiser + use.average + use.input);
}

int fitting_batch(const DeviceUse& use) {
  if (use.batch <= 8) return 0;
  const auto batch = static_cast<std::size_t>(use.batch);
  // The step failed on its way, so an image needs at least what it had by then.
  const std::size_t each = std::max<std::size_t>({use.image_needs, use.activations / batch, 1});
  const std::size_t fits = std::min((use.free + use.activations) / each, batch - 1);
  return static_cast<int>(fits / 8 * 8);
}

Error out_of_memory(const DeviceUse& use) {
  const std::size_t ours =
      use.weights + use.gradients + use.optimiser + use.average + use.input + use.activations;
  const std::size_t others = use.total > use.free + ours ? use.total - use.free - ours : 0;
  std::string held;
  const auto add = [&](const char* owner, std::size_t bytes) {
    if (bytes > 0) held += (held.empty() ? "" : ", ") + std::string(owner) + " " + readable_bytes(bytes);
  };
  add("weights", use.weights);
  add("gradients", use.gradients);
  add("optimiser", use.optimiser);
  add("averaged weights", use.average);
  add("input", use.input);
  add("activations so far", use.activations);
  add("libraries and other processes", others);
  add("free", use.free);

  const std::string less = use.recompute ? "" : ", or --set model.recompute=true (less for each image)";
  const int fits = fitting_batch(use);
  std::string hint = "not even 8 images fit: lower data.image_size or take a smaller model.arch" + less;
  if (fits > 0)
    hint = "a batch of about " + std::to_string(fits) +
           " would fit: --set train.batch=" + std::to_string(fits) +
           "; train.accumulate keeps the total batch" + less;
  return {"step", "device memory",
          "the " + readable_bytes(use.total) + " ran out at a batch of " + std::to_string(use.batch) + ": " +
              held,
          hint};
}

}  // namespace sluice
