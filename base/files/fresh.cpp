#include "base/files/fresh.hpp"

#include "base/files/write.hpp"

namespace sluice {

OpenedFile create_fresh(const std::filesystem::path& path) {
  return open_regular(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
}

bool swap_text(const std::filesystem::path& path, const std::filesystem::path& aside, std::string_view text) {
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);  // of a process that was killed
  const Descriptor file(create_fresh(aside).fd);
  if (file.get() < 0) return false;
  const bool good = write_all(file.get(), text) == text.size();
  if (good && ::rename(aside.c_str(), path.c_str()) == 0) return true;
  std::filesystem::remove(aside, ignored);
  return false;
}

}  // namespace sluice
