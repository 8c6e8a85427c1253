// Figures as people read them.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

[[nodiscard]] std::string readable_bytes(std::size_t bytes);  // "38.5 MiB"; below one MiB "256 KiB"

}  // namespace sluice
