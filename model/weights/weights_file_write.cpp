// Writing alone: it takes libtorch.
#include "base/printable.hpp"
#include "model/weights/network_part.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/torch_file.hpp"
#include "model/weights/weights_file.hpp"

namespace sluice {
namespace {

Error refusal(const std::filesystem::path& file, const std::string& cause, std::string hint) {
  return Error{"weights", file.string(), printable(cause), std::move(hint)};
}

bool is_torch(const std::filesystem::path& file) {
  return file.extension() == ".pt" || file.extension() == ".pth";
}

}  // namespace

Status can_write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) {
  if (!is_torch(file) && file.extension() != ".safetensors")
    return refusal(file, "its name tells no format that can be written",
                   "use a name that ends in .safetensors, .pt or .pth");
  return has_network(checkpoint, averaged);
}

Status write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) try {
  if (Status possible = can_write_weights(checkpoint, averaged, file); !possible) return possible;
  const Result<Snapshot> network =
      network_part(checkpoint, averaged, "", checkpoint.data.size() + memory_for_weights());
  if (!network) return network.error();
  return is_torch(file) ? write_torch_file(*network, file) : write_safetensors(*network, file);
} catch (const std::exception& error) {  // memory, above all
  return refusal(file, error.what(), "");
}

}  // namespace sluice
