// Configuration as text: single values, the whole as TOML, and the reference.
#include <array>
#include <charconv>
#include <cmath>

#include "base/printable.hpp"
#include "run/config/keys.hpp"

namespace sluice {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 needs to be told

// A character that is not fit for a terminal, as TOML writes it.
std::string in_toml(std::string_view character) {
  const std::string shown = printable(character);
  if (shown.starts_with("\\u{")) return "\\u" + shown.substr(3, 4);
  if (character.size() > 1 || shown == character) return shown;
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(character[0]);
  return {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    std::size_t bytes = 1;
    while (bytes < text.size() && (text[bytes] & 0xC0) == 0x80) ++bytes;
    if (text[0] == '"' || text[0] == '\\') out += '\\';
    out += in_toml(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out + '"';
}

std::string limit_text(const Key& key, double value) {
  Config scratch;
  const ValueRef held = key.value(scratch);
  if (std::holds_alternative<Size*>(held) || std::holds_alternative<SizeOrAuto*>(held))
    return size_text({static_cast<std::uint64_t>(value)});
  return "";
}

std::string allowed(const Key& key) {
  std::string out;
  for (const std::string_view choice : key.choices)
    out += (out.empty() ? "`" : ", `") + in_quotes(choice) + "`";
  if (out.empty() && !limit_text(key, key.limits.low).empty())
    return limit_text(key, key.limits.low) + " to " + limit_text(key, key.limits.high);
  return out.empty() ? key.limits.text() : out;
}

}  // namespace

bool Limits::allow(double value) const { return (above ? value > low : value >= low) && value <= high; }

std::string Limits::text() const {
  const auto plain = [](double value) {
    const std::string text = number_text(value);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  if (std::isinf(low)) return std::isinf(high) ? "" : "at most " + plain(high);
  if (std::isinf(high)) return above ? "above " + plain(low) : plain(low) + " or more";
  return above ? "above " + plain(low) + " and at most " + plain(high)
               : "from " + plain(low) + " to " + plain(high);
}

std::string number_text(double value) {
  std::array<char, 64> buffer;
  const double size = std::abs(value);
  const auto format =
      size == 0 || (size >= 1e-5 && size < 1e15) ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  std::string text(buffer.data(), end);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string_view type_text(const ValueRef& value) {
  return std::visit(
      Overloaded{[](bool*) { return "true or false"; }, [](std::int64_t*) { return "a whole number"; },
                 [](double*) { return "a number"; }, [](std::string*) { return "a string"; },
                 [](std::filesystem::path*) { return "a path (a string)"; },
                 [](Size*) { return "a size such as \"64MiB\""; },
                 [](SizeOrAuto*) { return "a size such as \"8GiB\", or \"auto\""; },
                 [](Count*) { return "a whole number or \"auto\""; },
                 [](Range*) { return "two numbers [low, high]"; },
                 [](std::vector<std::string>*) { return "a list of strings"; }},
      value);
}

std::string value_text(const ValueRef& value) {
  return std::visit(
      Overloaded{[](const bool* v) { return std::string(*v ? "true" : "false"); },
                 [](const std::int64_t* v) { return std::to_string(*v); },
                 [](const double* v) { return number_text(*v); },
                 [](const std::string* v) { return in_quotes(*v); },
                 [](const std::filesystem::path* v) { return in_quotes(v->string()); },
                 [](const Size* v) { return in_quotes(size_text(*v)); },
                 [](const SizeOrAuto* v) { return *v ? in_quotes(size_text(**v)) : in_quotes("auto"); },
                 [](const Count* v) { return *v ? std::to_string(**v) : in_quotes("auto"); },
                 [](const Range* v) {
                   return std::string("[").append(number_text((*v)[0])) + ", " + number_text((*v)[1]) + "]";
                 },
                 [](const std::vector<std::string>* v) {
                   std::string out;
                   for (const std::string& item : *v) out += (out.empty() ? "" : ", ") + in_quotes(item);
                   return "[" + out + "]";
                 }},
      value);
}

bool same_value(const ValueRef& a, const ValueRef& b) {
  return std::visit([&]<class T>(const T* value) { return *value == *std::get<T*>(b); }, a);
}

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string out;
  for (const Section& section : config_sections()) {
    out += (out.empty() ? "[" : "\n[") + std::string(section.name) + "]\n";
    for (const Key& key : config_keys())
      if (key.section() == section.name)
        out += std::string(key.leaf()) + " = " + value_text(key.value(copy)) + "\n";
  }
  return out;
}

std::string reference() {
  std::string out =
      "# Configuration\n\n"
      "A configuration is a TOML file. `sluice config FILE` prints it with every default filled in; any key "
      "can be\n"
      "overridden on the command line with `--set section.key=value`, as often as needed (the last one "
      "wins).\n"
      "Unknown keys, wrong types and values out of range are refused before anything starts, all of them at "
      "once.\n\n"
      "- Sizes are strings with a unit: `\"8GiB\"`, `\"512MiB\"`, `\"1.5GiB\"` (1024s) or `\"100kB\"`, "
      "`\"2GB\"` (1000s); a plain\n"
      "  whole number is bytes.\n"
      "- Relative paths are relative to the folder in which `sluice` is called, not to the configuration "
      "file.\n"
      "- A `--set` value is TOML too (`--set augment.flip=0.0`, `--set 'augment.scale=[0.2, 1.0]'`); "
      "strings, paths\n"
      "  and sizes need no quotes (`--set model.arch=resnet18`, `--set budget.ram=4GiB`).\n"
      "- Keys that cost memory say what they cost; `sluice train` prints how `budget.ram` is divided before "
      "it starts.\n";
  Config defaults;
  for (const Section& section : config_sections()) {
    out += "\n## [" + std::string(section.name) + "]\n\n" + std::string(section.meaning) + "\n";
    for (const Key& key : config_keys()) {
      if (key.section() != section.name) continue;
      const ValueRef value = key.value(defaults);
      out += "\n### `" + std::string(key.name) + "`\n\n" + std::string(key.meaning) + "\n\n";
      out += "- Type: " + std::string(type_text(value));
      if (const std::string values = allowed(key); !values.empty()) out += "; " + values;
      if (!key.unit.empty()) out += " (" + std::string(key.unit) + ")";
      out += key.required ? "\n- Required\n" : "\n- Default: `" + value_text(value) + "`\n";
      if (!key.memory.empty()) out += "- Memory: " + std::string(key.memory) + "\n";
    }
  }
  return out;
}

}  // namespace sluice
