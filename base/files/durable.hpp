// Replaces a file so that after a crash or a full disk either the old or the new content is there, whole:
// written to `<path>.partial`, synced, renamed, and the folder synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

namespace sluice {

// `stage` names the caller in errors. The parts are written one after the other; on failure the temporary
// file is removed and the old content stays.
Status replace_file(const std::string& stage, const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts);

// The first so many bytes of a file, or all of it, as a file of its own; on failure as above.
Status copy_file(const std::string& stage, const std::filesystem::path& from, const std::filesystem::path& to,
                 std::uintmax_t bytes = UINTMAX_MAX);

// For results that go where a user says (-o): a file is replaced as above. A device, a pipe or a link, as
// /dev/stdout is one, is written to: with a file in its place it would be gone.
Status write_output(const std::string& stage, const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts);

// A second name for a file, in the same folder, in place of what had that name: at no moment is there
// neither. False where that cannot be done, as on file systems without hard links.
bool link_file(const std::filesystem::path& file, const std::filesystem::path& name);

// Another name for a file or a folder whose content is on the disk already; the name is when this returns.
// False, with errno, where that failed.
[[nodiscard]] bool move_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Takes off what follows the first so many bytes; a crash leaves the file cut or as it was. False, with
// errno, where that failed.
[[nodiscard]] bool cut_file(const std::filesystem::path& path, std::uintmax_t bytes);

}  // namespace sluice
