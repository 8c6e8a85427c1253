// What a file of weights may ask for, whatever its format. No network here comes near these numbers, and
// nobody vouches for what such a file tells: it is held against them before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/result.hpp"

namespace sluice {

constexpr std::size_t most_tensors = 20'000;  // they are looked up by name, one by one
constexpr std::size_t most_dimensions = 64;   // torch has no more either
constexpr std::size_t longest_name = 4096;    // bytes
constexpr std::uint64_t most_weights = std::uint64_t{8} << 30;

// The bytes that reading weights may take here and now: what this process may still take of the machine, and
// no more than `most_weights`.
[[nodiscard]] std::uint64_t memory_for_weights();

// Refuses what is more than `memory`; `stage` and the file name the caller.
Status fits_memory(const std::string& stage, const std::filesystem::path& file, std::uint64_t bytes,
                   std::uint64_t memory);

// For memory that was asked for and not given, by a limit of this process, say.
[[nodiscard]] Error no_memory(const std::string& stage, const std::filesystem::path& file);

}  // namespace sluice
