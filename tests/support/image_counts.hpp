// What a look at some images of a set has found, without a set.
#pragma once

#include "run/data/image_sample.hpp"

namespace sluice::test {

inline ImageSample counts(std::size_t looked_at, std::size_t bad, std::size_t whole) {
  ImageSample s;
  s.looked_at = looked_at;
  s.bad = bad;
  s.whole = whole;
  s.first_bad = "x.JPEG: not a JPEG";
  return s;
}

}  // namespace sluice::test
