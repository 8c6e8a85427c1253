// How tests decode where they do not care: as a training run does, with limits that nothing here reaches.
#pragma once

#include "nodes/decode.hpp"

namespace sluice::test {

inline DecodeOptions decode_options(int out, int resize) {
  return {.out = out,
          .resize = resize,
          .scale = {0.08, 1.0},
          .ratio = {3.0 / 4.0, 4.0 / 3.0},
          .flip = 0.5,
          .thread_scratch = 8 << 20,
          .max_scratch = 256 << 20,
          .max_pixels = 178'956'970};
}

}  // namespace sluice::test
