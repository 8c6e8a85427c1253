#include "nodes/source/listing.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

namespace sluice {
namespace {

Error unreadable(const std::string& path, int code) {
  const char* hint = code == ENOENT    ? "check the path in the configuration"
                     : code == ENOTDIR ? "give the folder that holds the class folders"
                     : code == EACCES  ? "check its permissions"
                                       : "";
  return {"data", path, "cannot list the folder: " + std::generic_category().message(code), hint};
}

enum class Kind { folder, file, other };

Kind kind_of(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_DIR:
      return Kind::folder;
    case DT_REG:
      return Kind::file;
    case DT_LNK:
    case DT_UNKNOWN:
      break;
    default:
      return Kind::other;
  }
  struct stat status {};
  if (fstatat(directory, entry.d_name, &status, 0) != 0) return Kind::other;  // a link to nowhere
  return S_ISDIR(status.st_mode) ? Kind::folder : S_ISREG(status.st_mode) ? Kind::file : Kind::other;
}

}  // namespace

Result<Listing> list_directory(const std::string& path) {
  struct Closer {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  const std::unique_ptr<DIR, Closer> directory(opendir(path.c_str()));
  if (!directory) return unreadable(path, errno);

  Listing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (!entry) break;
    if (entry->d_name[0] == '.') continue;
    const Kind kind = kind_of(dirfd(directory.get()), *entry);
    if (kind == Kind::folder) listing.folders.emplace_back(entry->d_name);
    if (kind == Kind::file) listing.files.emplace_back(entry->d_name);
  }
  if (errno != 0) return unreadable(path, errno);
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

}  // namespace sluice
