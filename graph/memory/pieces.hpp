// A file as it was read: its bytes in order, in pieces of any length.
#pragma once

#include <cstdint>
#include <span>

namespace sluice {

using Pieces = std::span<const std::span<const std::uint8_t>>;

}  // namespace sluice
