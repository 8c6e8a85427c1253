#include "model/weights/network_part.hpp"

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

Error refusal(const Snapshot& checkpoint, std::string cause, std::string hint) {
  return Error{"weights", checkpoint.source, std::move(cause), std::move(hint)};
}

}  // namespace

Snapshot empty_like(const Snapshot& from) {
  Snapshot made;
  made.arch = from.arch;
  made.classes = from.classes;
  made.source = from.source;
  return made;
}

Status has_network(const Snapshot& checkpoint, bool averaged) {
  const auto holds = [&](std::string_view prefix) {
    return std::ranges::any_of(checkpoint.tensors,
                               [&](const StoredTensor& tensor) { return tensor.name.starts_with(prefix); });
  };
  if (!holds(model_prefix))
    return refusal(checkpoint, "has no weights of a network", "take another checkpoint");
  if (averaged && !holds(average_prefix))
    return refusal(checkpoint, "has no averaged weights: the run had optim.ema = 0",
                   "take the trained ones, without --ema");
  return Done{};
}

Result<Snapshot> network_part(const Snapshot& checkpoint, bool averaged, const std::string& prefix,
                              std::uint64_t memory) {
  struct Part {
    std::string name;
    const StoredTensor* tensor;
  };
  std::vector<Part> parts;
  std::size_t total = 0;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    if (!tensor.name.starts_with(model_prefix)) continue;
    const std::string name = tensor.name.substr(model_prefix.size());
    const StoredTensor* average =
        averaged ? checkpoint.find(std::string(average_prefix).append(name)) : nullptr;
    parts.push_back({prefix + name, average != nullptr ? average : &tensor});
    total += Snapshot::room_for(parts.back().tensor->bytes);
  }
  if (const Status fits = fits_memory("weights", checkpoint.source, checkpoint.data.size() + total, memory);
      !fits)
    return fits.error();
  Snapshot network = empty_like(checkpoint);
  network.data.reserve(total);
  for (Part& part : parts) {
    const auto room = network.add(std::move(part.name), part.tensor->dtype, part.tensor->shape);
    std::ranges::copy(checkpoint.bytes(*part.tensor), room.begin());
  }
  return network;
}

}  // namespace sluice
