// Vectors whose memory is kept from image to image.
#pragma once

#include <cstddef>
#include <vector>

namespace sluice {

// Grows to exactly `size`, giving the old memory back first: vector's own growth would hold both and round
// up.
template <class T>
void fit(std::vector<T>& vector, std::size_t size) {
  if (vector.capacity() < size) {
    std::vector<T>().swap(vector);
    vector.reserve(size);
  }
  vector.resize(size);
}

template <class T>
std::size_t held(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

}  // namespace sluice
