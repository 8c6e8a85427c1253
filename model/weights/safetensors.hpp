// The safetensors format: an u64 header length, a JSON header, and the tensors without gaps behind it.
// Names, types and bytes pass through as they are; "arch" and "classes" travel in the file's metadata.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

Status write_safetensors(const Snapshot& weights, const std::filesystem::path& path);
// Refuses a file whose header is not exactly covered by its data, or that holds a type we do not know.
Result<Snapshot> read_safetensors(const std::filesystem::path& path,
                                  std::uint64_t memory = memory_for_weights());

}  // namespace sluice
