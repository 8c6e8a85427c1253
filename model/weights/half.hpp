// Half precision made single, as it is stored: both kinds have a float32 for each of their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

enum class Half { f16, bf16 };

[[nodiscard]] float widened(std::uint16_t bits, Half kind);
// `to` has room for twice the bytes.
void widen(std::span<const std::byte> from, Half kind, std::span<std::byte> to);

}  // namespace sluice
