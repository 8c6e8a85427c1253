#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::test {

// A configuration file, followed by words of --set; the byte 0x1E stands between them. Also taken as a
// machine file. True if it is a sound configuration.
bool config_input(std::span<const std::uint8_t> input);

}  // namespace sluice::test
