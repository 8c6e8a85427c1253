// A state_dict as Python's torch.save writes it (.pt, .pth): a zip file with the pickle and one stored entry
// for each storage. What we write loads with torch.load(file, weights_only=True).
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

Status write_torch_file(const Snapshot& weights, const std::filesystem::path& path);
// Names, types and values as they are, row-major whatever their strides; see find_tensors() for what it may
// hold. Nothing in the file is ever executed.
Result<Snapshot> read_torch_file(const std::filesystem::path& path,
                                 std::uint64_t memory = memory_for_weights());

// Whether a file of this name is one.
[[nodiscard]] inline bool is_torch_name(const std::filesystem::path& file) {
  return file.extension() == ".pt" || file.extension() == ".pth";
}

}  // namespace sluice
