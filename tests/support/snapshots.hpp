// Small snapshots of tensors whose bytes can be told apart.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/weights/checkpoint_file.hpp"

namespace sluice::test {

struct Shaped {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
};

inline Snapshot filled(std::initializer_list<Shaped> tensors, int first = 1) {
  Snapshot snapshot;
  snapshot.arch = "resnet18";
  snapshot.classes = 10;
  for (const Shaped& t : tensors)
    for (std::byte& byte : snapshot.add(t.name, t.dtype, t.shape))
      byte = static_cast<std::byte>(first++ * 41);
  return snapshot;
}

}  // namespace sluice::test
