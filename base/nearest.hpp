// Which known word somebody meant: edit distance, with swapped neighbours as one edit and case ignored.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// All words, nearest first; words at the same distance keep their order.
[[nodiscard]] std::vector<std::string_view> by_distance(std::string_view word,
                                                        std::span<const std::string_view> known);

// The nearest word, if it is near enough to be a slip of the hand: a third of the letters, at least two.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> known);

// The same for "section.key" names. The right key in the wrong section ("train.lr") counts as one slip.
[[nodiscard]] std::optional<std::string_view> nearest_key(std::string_view word,
                                                          std::span<const std::string_view> known);

}  // namespace sluice
