// All that can be seen of a folder, as text: two of them are equal if nothing in it was changed in between.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::test {

// Each entry's name, type, permissions, owner, number, links, size and times. Content needs no reading: a
// change, even one that is taken back, sets st_ctime, and nobody can set that to what it was.
inline std::string tree(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> lines;
  const auto add = [&](const fs::path& path) {
    struct stat about {};
    if (lstat(path.c_str(), &about) != 0) std::abort();
    std::string line = path.lexically_relative(folder).string();
    for (const auto number :
         {static_cast<long>(about.st_mode), static_cast<long>(about.st_uid), static_cast<long>(about.st_ino),
          static_cast<long>(about.st_nlink), static_cast<long>(about.st_size),
          static_cast<long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec,
          static_cast<long>(about.st_ctim.tv_sec), about.st_ctim.tv_nsec})
      line += " " + std::to_string(number);
    lines.push_back(line + "\n");
  };
  add(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) add(entry.path());
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace sluice::test
