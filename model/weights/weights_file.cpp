#include "model/weights/weights_file.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/printable.hpp"
#include "pch/torch.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/torch_file.hpp"

namespace sluice {
namespace {

constexpr std::string_view model_prefix = "model.", average_prefix = "ema.";

Error refusal(const std::filesystem::path& file, const std::string& cause, std::string hint) {
  return Error{"weights", file.string(), printable(cause), std::move(hint)};
}

bool is_torch(const std::filesystem::path& file) {
  return file.extension() == ".pt" || file.extension() == ".pth";
}

Snapshot empty_like(const Snapshot& from) {
  Snapshot made;
  made.arch = from.arch;
  made.classes = from.classes;
  made.source = from.source;
  return made;
}

void copy_tensor(const Snapshot& from, const StoredTensor& tensor, std::string name, Snapshot& into) {
  const auto room = into.add(std::move(name), tensor.dtype, tensor.shape);
  std::ranges::copy(from.bytes(tensor), room.begin());
}

Status check_network(const Snapshot& checkpoint, bool averaged) {
  const auto holds = [&](std::string_view prefix) {
    return std::ranges::any_of(checkpoint.tensors,
                               [&](const StoredTensor& tensor) { return tensor.name.starts_with(prefix); });
  };
  if (!holds(model_prefix))
    return refusal(checkpoint.source, "has no weights of a network", "take another checkpoint");
  if (averaged && !holds(average_prefix))
    return refusal(checkpoint.source, "has no averaged weights: the run had optim.ema = 0",
                   "take the trained ones, without --ema");
  return Done{};
}

// The network's tensors of a checkpoint, each named `prefix` and its name in the network.
Snapshot network_of(const Snapshot& checkpoint, bool averaged, const std::string& prefix) {
  Snapshot network = empty_like(checkpoint);
  for (const StoredTensor& tensor : checkpoint.tensors) {
    if (!tensor.name.starts_with(model_prefix)) continue;
    const std::string name = tensor.name.substr(model_prefix.size());
    const StoredTensor* average =
        averaged ? checkpoint.find(std::string(average_prefix).append(name)) : nullptr;
    copy_tensor(checkpoint, average != nullptr ? *average : tensor, prefix + name, network);
  }
  return network;
}

std::string_view network_name(std::string_view name) {
  constexpr std::string_view wrappers[] = {"module.", "model.", "_orig_mod."};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : wrappers)
      if (name.starts_with(wrapper)) {
        name.remove_prefix(wrapper.size());
        found = true;
      }
  }
  return name;
}

void widen(const Snapshot& from, const StoredTensor& tensor, std::string name, Snapshot& into) {
  const auto room = into.add(std::move(name), "f32", tensor.shape);
  if (room.empty()) return;
  const auto type = tensor.dtype == "f16" ? at::kHalf : at::kBFloat16;
  at::from_blob(room.data(), tensor.shape, at::kFloat)
      .copy_(at::from_blob(const_cast<std::byte*>(from.bytes(tensor).data()), tensor.shape, type));
}

Result<Snapshot> as_ours(const Snapshot& theirs) {
  Snapshot ours = empty_like(theirs);
  std::unordered_set<std::string> seen;
  for (const StoredTensor& tensor : theirs.tensors) {
    std::string name = std::string(model_prefix).append(network_name(tensor.name));
    if (!seen.insert(name).second)
      return refusal(theirs.source, "holds " + name.substr(model_prefix.size()) + " more than once",
                     "save model.state_dict() alone");
    if (tensor.dtype == "f16" || tensor.dtype == "bf16")
      widen(theirs, tensor, std::move(name), ours);
    else
      copy_tensor(theirs, tensor, std::move(name), ours);
  }
  return ours;
}

Result<Snapshot> read(const std::filesystem::path& file, bool averaged) {
  if (file.extension() == ".ckpt") {
    const Result<Snapshot> checkpoint = read_checkpoint(file);
    if (!checkpoint) return checkpoint.error();
    if (const Status sound = check_network(*checkpoint, averaged); !sound) return sound.error();
    return network_of(*checkpoint, averaged, std::string(model_prefix));
  }
  if (averaged)
    return refusal(file, "only a checkpoint tells trained and averaged weights apart", "give a .ckpt file");
  if (!is_torch(file) && file.extension() != ".safetensors")
    return refusal(file, "its name tells no format that is known",
                   "use a name that ends in .ckpt, .safetensors, .pt or .pth");
  const Result<Snapshot> weights = is_torch(file) ? read_torch_file(file) : read_safetensors(file);
  if (!weights) return weights.error();
  return as_ours(*weights);
}

}  // namespace

Status can_write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) {
  if (!is_torch(file) && file.extension() != ".safetensors")
    return refusal(file, "its name tells no format that can be written",
                   "use a name that ends in .safetensors, .pt or .pth");
  return check_network(checkpoint, averaged);
}

Status write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) try {
  if (Status possible = can_write_weights(checkpoint, averaged, file); !possible) return possible;
  const Snapshot network = network_of(checkpoint, averaged, "");
  return is_torch(file) ? write_torch_file(network, file) : write_safetensors(network, file);
} catch (const std::exception& error) {  // memory, above all
  return refusal(file, error.what(), "");
}

Result<Snapshot> read_weights(const std::filesystem::path& file, bool averaged) try {
  return read(file, averaged);
} catch (const std::exception& error) {
  return refusal(file, error.what(), "");
}

}  // namespace sluice
