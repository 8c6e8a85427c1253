#include "nodes/record/metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice {
namespace {

constexpr std::array<std::string_view, 13> order{
    "train/loss",   "train/acc1",   "train/acc5",   "train/lr", "val/loss",     "val/acc1", "val/acc5",
    "val/ema_loss", "val/ema_acc1", "val/ema_acc5", "step_ms",  "images_per_s", "data_wait"};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Always with a point or an exponent: a reader would take "-0" for the integer zero and lose the sign.
std::string number(double value) {
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string json_line(const Record& record) {
  Values values = record.values;
  std::ranges::stable_sort(values, {},
                           [](const auto& entry) { return std::ranges::find(order, entry.first); });

  std::string line = "{\"event\":" + quoted(record.event) + ",\"epoch\":" + std::to_string(record.epoch) +
                     ",\"step\":" + std::to_string(record.step);
  std::string non_finite;
  for (const auto& [name, value] : values) {
    const bool finite = std::isfinite(value);
    line.append(",").append(quoted(name)).append(":").append(finite ? number(value) : "null");
    if (!finite) non_finite.append(non_finite.empty() ? "" : ",").append(quoted(name));
  }
  for (const auto& [name, text] : record.texts)
    line.append(",").append(quoted(name)).append(":").append(quoted(text));
  if (!non_finite.empty()) line += ",\"non_finite\":[" + non_finite + "]";
  return line + "}";
}

}  // namespace sluice
