// Where the kernel keeps the limits of this process's cgroup and of those above it.
#pragma once

#include <string>
#include <vector>

namespace sluice {

// The cgroup of this process below its controller's mount: "/" inside most containers. `controller`: empty
// for version 2. `root` is put before /proc.
[[nodiscard]] std::string cgroup_path(const std::string& root, const std::string& controller);

// The folders of a cgroup and its parents, up to the mount; each ends in a slash.
[[nodiscard]] std::vector<std::string> with_parents(const std::string& mount, std::string path);

}  // namespace sluice
