#include "base/text.hpp"

#include <cstdio>

namespace sluice {

std::string readable_bytes(std::size_t bytes) {
  char text[32];
  const double kib = static_cast<double>(bytes) / 1024.0;
  if (kib < 1024)
    std::snprintf(text, sizeof text, "%.0f KiB", kib);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", kib / 1024);
  return text;
}

}  // namespace sluice
