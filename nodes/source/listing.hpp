// The entries of one directory, by kind, in byte order; hidden ones are left out. Uses what readdir tells and
// asks the file system only about symlinks and file systems that do not tell.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

struct Listing {
  std::vector<std::string> folders, files;
};

[[nodiscard]] Result<Listing> list_directory(const std::string& path);

}  // namespace sluice
