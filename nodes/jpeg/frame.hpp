// The size that a JPEG claims to have, found by stepping from marker to marker as libjpeg does. Needs no
// decoder and no memory, so that an image of too many pixels is known for what it is before it waits for
// anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "graph/memory/pieces.hpp"
#include "nodes/image/crop.hpp"

namespace sluice {

// Of the first frame header; nothing if there is none before the image data.
[[nodiscard]] std::optional<ImageSize> claimed_size(Pieces pieces);

// An error of the decode stage if a size is of more pixels than data.max_pixels allows.
[[nodiscard]] Status within_pixels(ImageSize size, std::uint64_t max_pixels);

}  // namespace sluice
