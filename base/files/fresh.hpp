// A file that is certainly new, for temporary ones at a name that others could guess: a link or a file that
// somebody has planted there is neither followed nor written to.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/files/regular.hpp"

namespace sluice {

// For writing. Fails with EEXIST if anything of that name is there, be it a link to nowhere.
[[nodiscard]] OpenedFile create_fresh(const std::filesystem::path& path);

// Whoever opens `path` finds the old text or the new one, whole, and `aside`, in the same folder, is gone
// after it. Without waiting for the disk: for what a crash may take. False where it cannot be done.
bool swap_text(const std::filesystem::path& path, const std::filesystem::path& aside, std::string_view text);

}  // namespace sluice
