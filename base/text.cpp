#include "base/text.hpp"

#include <fmt/core.h>

namespace sluice {

std::string readable_bytes(std::size_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024.0;
  return kib < 1024 ? fmt::format("{:.0f} KiB", kib) : fmt::format("{:.1f} MiB", kib / 1024);
}

}  // namespace sluice
