#include "run/config/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> units{{{"", 1},
                                      {"b", 1},
                                      {"kb", 1e3},
                                      {"mb", 1e6},
                                      {"gb", 1e9},
                                      {"tb", 1e12},
                                      {"kib", 0x1p10},
                                      {"mib", 0x1p20},
                                      {"gib", 0x1p30},
                                      {"tib", 0x1p40}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

Result<Size> parse_size(std::string_view text) {
  const auto refuse = [&](std::string hint) {
    return Error{"", "", std::string("\"").append(text) + "\" is not a size", std::move(hint)};
  };
  const std::string_view body = trimmed(text);
  double number = 0;
  const char* const end = body.data() + body.size();
  const auto [rest, failure] = std::from_chars(body.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc{} || !std::isfinite(number))
    return refuse("write a number and a unit, such as \"8GiB\"");
  if (std::signbit(number)) return refuse("a size cannot be negative");

  const std::string_view given = trimmed({rest, end});
  const std::string name = lower(given);
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) {
    const bool half = name.size() == 1 && std::string_view("kmgt").find(name) != std::string_view::npos;
    const std::string letter = half ? std::string(1, static_cast<char>(std::toupper(name[0]))) : "";
    return refuse(half ? "write " + letter + "iB (1024s) or " + letter + "B (1000s)"
                       : "the units are B, kB, MB, GB, TB and KiB, MiB, GiB, TiB");
  }
  // Plain integers are read exactly; a double would round above 2^53.
  std::uint64_t whole = 0;
  const auto [stop, overflow] = std::from_chars(body.data(), rest, whole);
  if (unit->bytes == 1 && stop == rest && overflow == std::errc{}) return Size{whole};
  const double bytes = number * unit->bytes;
  if (bytes >= 0x1p63) return refuse("it is larger than any machine's memory");
  return Size{static_cast<std::uint64_t>(std::llround(bytes))};
}

std::string size_text(Size size) {
  constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < names.size() && size.bytes != 0 && size.bytes % 1024 == 0) size.bytes /= 1024, ++unit;
  return std::to_string(size.bytes) + std::string(names[unit]);
}

}  // namespace sluice
