#include "run/train/memory_watch.hpp"

#include <algorithm>
#include <fstream>

#include "base/text.hpp"

namespace sluice {

MemoryWatch::MemoryWatch(std::size_t planned, Read read)
    : planned_(planned),
      margin_(std::max<std::size_t>(planned / 10, std::size_t{256} << 20)),
      read_(std::move(read)) {}

std::optional<std::string> MemoryWatch::look(std::int64_t now) {
  if (told_ || (looked_ && now - *looked_ < every)) return std::nullopt;
  looked_ = now;
  const MemoryFigures f = read_();
  if (f.resident <= allowed()) return std::nullopt;
  told_ = true;
  const std::size_t known = std::min(f.data_path + f.torch_pool, f.resident);
  return "memory: the process has " + readable_bytes(f.resident) + ", and " + readable_bytes(planned_) +
         " were planned: data path " + readable_bytes(f.data_path) + ", torch's tensors " +
         readable_bytes(f.torch_pool) + ", the rest " + readable_bytes(f.resident - known) +
         "; `sluice plan` tells what was planned for each; if memory is short, lower train.batch or "
         "budget.ram";
}

std::size_t resident_bytes(const std::string& root) {
  std::ifstream in(root + "/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

}  // namespace sluice
