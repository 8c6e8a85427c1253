// Weights alone, to and from Python. The file's name decides the format: `.safetensors`, `.pt` or `.pth`
// hold torchvision's state_dict; `.ckpt` is a checkpoint of this program.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

// Writes a checkpoint's "model." tensors without that prefix; `averaged` takes the moving averages ("ema.")
// of those that have one.
Status write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file);
// What it would refuse before it writes: another format, a checkpoint without averages.
Status can_write_weights(const Snapshot& checkpoint, bool averaged, const std::filesystem::path& file);

// Gives tensors named "model.<torchvision name>", whatever "module.", "model." or "_orig_mod." Python has put
// before them. f16 and bf16 come as f32; all other types, and names that are missing or too many, are left
// to copy_in(). `arch` and `classes` are empty and 0 where the file does not tell. `averaged` is for
// checkpoints only, and so are arch and classes of what is expected.
Result<Snapshot> read_weights(const std::filesystem::path& file, bool averaged = false,
                              const Expected& expected = {});

}  // namespace sluice
