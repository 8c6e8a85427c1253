// Bytes into a descriptor, and a descriptor's or a folder's content onto the disk: once for everybody.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace sluice {

// How many bytes were written: all of them, or fewer, with errno.
std::size_t write_all(int file, std::span<const std::byte> bytes);
std::size_t write_all(int file, std::string_view text);

// Waits until the content is on the disk. False, with errno, where that failed or cannot be told; a device or
// a pipe has no disk behind it, so nobody should ask for one.
[[nodiscard]] bool sync_file(int file);

// Likewise for the names in a folder. Nothing more can be done, and that is no failure, where the file system
// cannot sync one (some network file systems say so with EINVAL), or where the folder may be written to but
// not opened (EACCES).
[[nodiscard]] bool sync_folder(const std::filesystem::path& folder);
[[nodiscard]] bool sync_folder_of(const std::filesystem::path& file);  // the one that its name is in

}  // namespace sluice
