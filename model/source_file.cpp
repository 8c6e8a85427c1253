#include "model/source_file.hpp"

#include <cerrno>
#include <system_error>

namespace sluice {

Result<SourceFile> SourceFile::open(const std::string& stage, const std::filesystem::path& path) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!unknown && !stream) unknown = std::error_code(errno, std::generic_category());
  if (unknown) return Error{stage, path.string(), "cannot be opened: " + unknown.message(), "check the path"};
  return SourceFile(std::move(stream), size);
}

}  // namespace sluice
