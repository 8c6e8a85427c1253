#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nodes/decode.hpp"

namespace sluice::test {

// The whole decode stage on one file. Split, crop, quality and how the file is cut into pieces come from its
// bytes.
DecodeOutcome decode_input(std::span<const std::uint8_t> file);

}  // namespace sluice::test
