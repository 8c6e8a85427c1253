// NumPy's array files, version 1.0.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

// `type` as NumPy writes it: "|u1" for bytes, "<i4" for 32-bit integers. `data` has the array's bytes in C
// order.
[[nodiscard]] Status write_npy(const std::filesystem::path& file, const std::string& type,
                               const std::vector<std::size_t>& shape, std::span<const std::byte> data);

}  // namespace sluice
