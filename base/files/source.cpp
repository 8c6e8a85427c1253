#include "base/files/source.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files/regular.hpp"

namespace sluice {

Result<SourceFile> SourceFile::open(const std::string& stage, const std::filesystem::path& path) {
  const OpenedFile file = open_regular(path.c_str());
  if (file.fd < 0)
    return Error{stage, path.string(), "cannot be opened: " + file.cause(),
                 file.kind ? "give a file that holds weights" : "check the path"};
  return SourceFile(std::make_unique<Descriptor>(file.fd), static_cast<std::uint64_t>(file.facts.st_size));
}

bool SourceFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  constexpr std::size_t most = 1 << 30;  // a single read stops short of 2 GiB
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file_->get(), at, std::min(bytes, most), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ESTALE;  // it has become shorter
    if (got <= 0) return false;
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace sluice
