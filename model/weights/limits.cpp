#include "model/weights/limits.hpp"

#include <algorithm>

#include "base/available_memory.hpp"

namespace sluice {

std::uint64_t memory_for_weights() {
  const std::optional<AvailableMemory> memory = available_memory();
  return memory ? std::min<std::uint64_t>(memory->bytes, most_weights) : most_weights;
}

Status fits_memory(const std::string& stage, const std::filesystem::path& file, std::uint64_t bytes,
                   std::uint64_t memory) {
  if (bytes <= memory) return Done{};
  return Error{stage, file.string(),
               "would take " + std::to_string(bytes) + " bytes of memory, " + std::to_string(memory) +
                   " are there for it",
               memory < most_weights ? "free some memory" : "save the weights alone"};
}

Error no_memory(const std::string& stage, const std::filesystem::path& file) {
  return {stage, file.string(), "the system gives no memory to read it",
          "free some, or raise the limit of this process (ulimit -v)"};
}

}  // namespace sluice
