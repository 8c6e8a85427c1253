// A labelled JPEG tree with ImageNet-like sizes, for trying everything without ImageNet. It is made beside
// its place and moved there when it is complete; an interrupted one is taken up again by the next call with
// the same options.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace sluice {

struct SynthOptions {
  std::string dir;   // gets train/<class>/*.JPEG, val/<class>/*.JPEG and synth.json
  int classes = 10;  // 2 to 1000
  int train_per_class = 120;
  int val_per_class = 20;
  std::uint64_t seed = 42;
  int size = 500;  // longer side of most images, in pixels
  int threads = 2;
};

// From one thread at a time, with the images there are so far and in all; may be empty.
using SynthProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Does nothing if `dir` has just this tree already, and refuses to touch a folder that holds anything else.
// The same options give the same bytes, at any number of threads. Of two calls at once, the second waits for
// the first.
[[nodiscard]] Status synth(const SynthOptions& options, const SynthProgress& progress = {});

}  // namespace sluice
