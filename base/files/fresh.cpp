#include "base/files/fresh.hpp"

#include <unistd.h>

namespace sluice {

OpenedFile create_fresh(const std::filesystem::path& path) {
  return open_regular(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
}

bool swap_text(const std::filesystem::path& path, const std::filesystem::path& aside, std::string_view text) {
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);  // of a process that was killed
  const Descriptor file(create_fresh(aside).fd);
  if (file.get() < 0) return false;
  bool good = true;
  while (good && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (good && ::rename(aside.c_str(), path.c_str()) == 0) return true;
  std::filesystem::remove(aside, ignored);
  return false;
}

}  // namespace sluice
