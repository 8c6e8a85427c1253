#include "model/weights/weights_file.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/printable.hpp"
#include "model/weights/half.hpp"
#include "model/weights/network_part.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/torch_file.hpp"

namespace sluice {
namespace {

Error refusal(const std::filesystem::path& file, const std::string& cause, std::string hint) {
  return Error{"weights", file.string(), printable(cause), std::move(hint)};
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

bool is_half(const StoredTensor& tensor) { return tensor.dtype == "f16" || tensor.dtype == "bf16"; }

// Half precision takes twice as much as single: that needs memory of its own, beside what was read.
Result<Snapshot> widened(const Snapshot& theirs, std::uint64_t memory) {
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : theirs.tensors)
    total += Snapshot::room_for(is_half(tensor) ? 2 * tensor.bytes : tensor.bytes);
  if (const Status fits = fits_memory("weights", theirs.source, theirs.data.size() + total, memory); !fits)
    return fits.error();
  Snapshot ours = empty_like(theirs);
  ours.data.reserve(total);
  for (const StoredTensor& tensor : theirs.tensors) {
    const auto room = ours.add(tensor.name, is_half(tensor) ? "f32" : tensor.dtype, tensor.shape);
    const auto bytes = theirs.bytes(tensor);
    if (is_half(tensor))
      widen(bytes, tensor.dtype == "f16" ? Half::f16 : Half::bf16, room);
    else
      std::ranges::copy(bytes, room.begin());
  }
  return ours;
}

Result<Snapshot> as_ours(Snapshot weights, std::uint64_t memory) {
  std::unordered_set<std::string> seen;
  for (StoredTensor& tensor : weights.tensors) {
    tensor.name = std::string(model_prefix).append(network_name(tensor.name));
    if (!seen.insert(tensor.name).second)
      return refusal(weights.source, "holds " + tensor.name.substr(model_prefix.size()) + " more than once",
                     "save model.state_dict() alone");
  }
  if (std::ranges::any_of(weights.tensors, is_half)) return widened(weights, memory);
  return weights;
}

Result<Snapshot> read(const std::filesystem::path& file, bool averaged, const Expected& expected) {
  if (file.extension() == ".ckpt") {
    const Result<Snapshot> checkpoint = read_checkpoint(file, expected);
    if (!checkpoint) return checkpoint.error();
    if (const Status sound = has_network(*checkpoint, averaged); !sound) return sound.error();
    return network_part(*checkpoint, averaged, std::string(model_prefix), expected.memory);
  }
  if (averaged)
    return refusal(file, "only a checkpoint tells trained and averaged weights apart", "give a .ckpt file");
  if (!is_torch_name(file) && file.extension() != ".safetensors")
    return refusal(file, "its name tells no format that is known",
                   "use a name that ends in .ckpt, .safetensors, .pt or .pth");
  Result<Snapshot> weights =
      is_torch_name(file) ? read_torch_file(file, expected.memory) : read_safetensors(file, expected.memory);
  if (!weights) return weights.error();
  return as_ours(std::move(*weights), expected.memory);
}

}  // namespace

Result<Snapshot> read_weights(const std::filesystem::path& file, bool averaged,
                              const Expected& expected) try {
  return read(file, averaged, expected);
} catch (const std::bad_alloc&) {
  return no_memory("weights", file);
} catch (const std::exception& error) {
  return refusal(file, error.what(), "");
}

}  // namespace sluice
