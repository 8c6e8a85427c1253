#include "cli/doctor/disk.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace sluice {
namespace fs = std::filesystem;

void look_at_disk(Checklist& list, fs::path folder, std::size_t bytes) {
  std::error_code ignored;
  folder = fs::absolute(folder, ignored);
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  const std::string name = folder.string();
  if (!fs::is_directory(folder, ignored))
    return list.fail("disk", name + " is not a folder", "set log.dir to another place");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return list.fail("disk", name + " cannot be written: " + std::strerror(errno),
                     "set log.dir to a folder of your own");
  struct statvfs facts {};
  if (statvfs(folder.c_str(), &facts) != 0)
    return list.fail("disk", name + ": " + std::strerror(errno), "set log.dir to another place");
  const std::size_t free = std::size_t{facts.f_bavail} * facts.f_frsize;
  const std::string found =
      readable_bytes(free) + " free below " + name + ", checkpoints take about " + readable_bytes(bytes);
  const char* hint = "make room, set log.dir to another disk, or lower checkpoint.keep";
  if (facts.f_files > 0 && facts.f_favail < 100)
    list.fail("disk", found + "; only " + std::to_string(facts.f_favail) + " more files may be made", hint);
  else if (free <= bytes + bytes / 10)
    list.fail("disk", found, hint);
  else
    list.ok("disk", found);
  list.figure("free_bytes", static_cast<double>(free));
  list.figure("checkpoint_bytes", static_cast<double>(bytes));
}

}  // namespace sluice
