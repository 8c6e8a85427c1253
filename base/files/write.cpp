#include "base/files/write.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor.hpp"
#include "base/files/calls.hpp"

namespace sluice {

std::size_t write_all(int file, std::span<const std::byte> bytes) {
  constexpr std::size_t most = 1 << 30;  // a single write() stops short of 2 GiB
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count =
        file_calls().write(file, bytes.data() + written, std::min(bytes.size() - written, most));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = ENOSPC;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  return written;
}

std::size_t write_all(int file, std::string_view text) {
  return write_all(file, std::as_bytes(std::span(text)));
}

bool sync_file(int file) {
  int failed = 0;
  do failed = file_calls().fsync(file);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
}

bool sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(file_calls().open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (opened.get() < 0) return errno == EACCES;
  return sync_file(opened.get()) || errno == EINVAL;
}

bool sync_folder_of(const std::filesystem::path& file) {
  return sync_folder(file.has_parent_path() ? file.parent_path() : ".");
}

}  // namespace sluice
