#include "nodes/record/progress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace sluice {
namespace {

constexpr int least_bar = 10, most_bar = 40;

double rate(const Progress& p) {
  const double count = static_cast<double>(p.done - p.before);
  return p.elapsed > 0 && count > 0 ? count / p.elapsed : NAN;
}

double left(const Progress& p) {
  if (p.total > 0 && p.done >= p.total) return 0;
  return static_cast<double>(p.total - p.done) / rate(p);
}

std::string rate_text(double value) {
  if (!std::isfinite(value)) return "?it/s";
  return (value >= 1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value)) + "it/s";
}

std::string bar(double share, int width) {
  constexpr std::array<std::string_view, 8> parts{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(share * width * 8);
  std::string out;
  for (int i = 0; i < width; ++i)
    out += eighths >= (i + 1) * 8 ? std::string_view("█")
                                  : parts[static_cast<std::size_t>(std::max(0, eighths - i * 8))];
  return out;
}

// The text's first columns; a character is never cut in half.
std::string clipped(const std::string& text, int width) {
  std::string out;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && width-- <= 0) break;
    out += c;
  }
  return out;
}

}  // namespace

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const long whole = static_cast<long>(seconds);
  if (whole < 3600) return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string short_number(double value) {
  const double size = std::abs(value);
  return size >= 999.5 && size < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string progress_line(const Progress& p, int width) {
  const std::string count = std::to_string(p.done);
  if (p.total <= 0) {
    std::string line = p.label + ": " + count + "it [" + clock_text(p.elapsed) + ", " + rate_text(rate(p));
    for (const auto& [name, value] : p.values) line += ", " + name + "=" + short_number(value);
    return clipped(line + "]", width);
  }
  const double share = std::clamp(static_cast<double>(p.done) / static_cast<double>(p.total), 0.0, 1.0);
  // 100 % is said when everything is done, not when rounding makes it so.
  const double percent = p.done >= p.total ? 100 : std::min(99.0, std::round(100 * share));
  const std::string head = p.label + ": " + fmt::format("{:>3.0f}", percent) + "%";
  const std::string of =
      count + "/" + std::to_string(p.total) + " [" + clock_text(p.elapsed) + "<" + clock_text(left(p));
  std::string tail = of + ", " + rate_text(rate(p));

  const auto spare = [&](const std::string& end) {
    return width - static_cast<int>(columns(head) + 3 + columns(end) + 1);  // "|", "| " and "]"
  };
  for (const auto& [name, value] : p.values) {
    const std::string longer = tail + ", " + name + "=" + short_number(value);
    if (spare(longer) < least_bar) break;
    tail = longer;
  }
  if (spare(tail) < 1) return clipped(head + " " + tail + "]", width);
  return head + "|" + bar(share, std::min(spare(tail), most_bar)) + "| " + tail + "]";
}

std::string plain_line(const Progress& p) {
  std::string line = p.plain;
  if (line.empty())
    for (const char c : p.label) line += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  line += " step " + std::to_string(p.done);
  if (p.total > 0) (line += '/') += std::to_string(p.total);
  for (const auto& [name, value] : p.values) line += " " + name + " " + short_number(value);
  line += " elapsed " + clock_text(p.elapsed);
  return p.total > 0 ? line + " left " + clock_text(left(p)) : line;
}

std::string summary_line(std::int64_t epoch, const Values& values, double seconds, double images_per_second) {
  std::string line = "Epoch " + std::to_string(epoch) + ":";
  for (const auto& [name, value] : values) {
    const bool loss = name.ends_with("loss"), accuracy = name.find("/acc") != std::string::npos;
    line += " " + name + " " +
            (loss       ? fmt::format("{:.4f}", value)
             : accuracy ? fmt::format("{:.2f}", value)
                        : short_number(value));
  }
  return line + " (" + fmt::format("{:.1f}", seconds) + " s, " + short_number(images_per_second) + " img/s)";
}

}  // namespace sluice
