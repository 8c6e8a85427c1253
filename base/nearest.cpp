#include "base/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace sluice {
namespace {

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

constexpr std::size_t longest_word = 200;  // nobody misspells more, and distances take the square of it

std::size_t allowance(std::string_view word) { return std::max<std::size_t>(2, word.size() / 3); }

std::string_view leaf(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> by_distance(std::string_view word, std::span<const std::string_view> known) {
  std::vector<std::string_view> sorted(known.begin(), known.end());
  if (word.size() > longest_word) return sorted;
  std::ranges::stable_sort(sorted, {}, [&](std::string_view other) { return edit_distance(word, other); });
  return sorted;
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > longest_word) return std::nullopt;
  const auto sorted = by_distance(word, known);
  if (sorted.empty() || edit_distance(word, sorted.front()) > allowance(word)) return std::nullopt;
  return sorted.front();
}

std::optional<std::string_view> nearest_key(std::string_view word, std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  if (word.size() > longest_word) return best;
  std::size_t least = allowance(leaf(word)) + 1;
  for (const std::string_view key : known) {
    const std::size_t distance = std::min(edit_distance(word, key), edit_distance(leaf(word), leaf(key)) + 1);
    if (distance < least) best = key, least = distance;
  }
  return best;
}

}  // namespace sluice
