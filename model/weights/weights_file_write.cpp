// Writing alone: it takes libtorch.
#include "base/printable.hpp"
#include "model/weights/network_part.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/torch_file.hpp"
#include "model/weights/weights_file.hpp"

namespace sluice {
Status can_write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) {
  if (!is_torch_name(file) && file.extension() != ".safetensors")
    return Error{"weights", file.string(), "its name tells no format that can be written",
                 "use a name that ends in .safetensors, .pt or .pth"};
  return has_network(checkpoint, averaged);
}

Status write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file) try {
  if (Status possible = can_write_weights(checkpoint, averaged, file); !possible) return possible;
  const Result<Snapshot> network =
      network_part(checkpoint, averaged, "", checkpoint.data.size() + memory_for_weights());
  if (!network) return network.error();
  return is_torch_name(file) ? write_torch_file(*network, file) : write_safetensors(*network, file);
} catch (const std::exception& error) {  // memory, above all
  return Error{"weights", file.string(), printable(error.what()), ""};
}

}  // namespace sluice
