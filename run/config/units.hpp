// Sizes in bytes as people write them: "8GiB", "512 MiB", "100kB", "1.5GiB", "4096". Binary units (KiB, MiB,
// ...) count in 1024s, decimal ones (kB, MB, ...) in 1000s; a bare "8G" is refused because it could be
// either.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sluice {

struct Size {
  std::uint64_t bytes = 0;
  auto operator<=>(const Size&) const = default;
};

// The error's cause and hint are filled in; stage and subject are the caller's.
[[nodiscard]] Result<Size> parse_size(std::string_view text);

// Exact, in the largest binary unit that divides it: 1.5 GiB is "1536MiB", 1000 bytes "1000B".
[[nodiscard]] std::string size_text(Size size);

}  // namespace sluice
