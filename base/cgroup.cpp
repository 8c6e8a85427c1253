#include "base/cgroup.hpp"

#include <fstream>

namespace sluice {

std::string cgroup_path(const std::string& root, const std::string& controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names == ",," : names.find("," + controller + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

std::vector<std::string> with_parents(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  for (std::size_t slash; path.size() > 1 && (slash = path.rfind('/')) != std::string::npos;
       path.resize(slash))
    folders.push_back(mount + path + "/");
  folders.push_back(mount + "/");
  return folders;
}

}  // namespace sluice
