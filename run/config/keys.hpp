// The one table of configuration keys. Reading, checking, `--set`, printing and the reference all follow it,
// so a key that is missing here does not exist.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "run/config/config.hpp"

namespace sluice {

// A key's value in a Config; the alternative is also its type.
using ValueRef = std::variant<bool*, std::int64_t*, double*, std::string*, std::filesystem::path*, Size*,
                              SizeOrAuto*, Count*, Range*, std::vector<std::string>*>;

// Numbers (of a Range: both) from low to high; `above` leaves out low itself.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above = false;

  [[nodiscard]] bool allow(double value) const;
  [[nodiscard]] std::string text()
      const;  // "from 1 to 10", "0 or more", "above 0 and at most 1"; "" if unlimited
};

struct Key {
  std::string_view name;  // "section.key"
  ValueRef (*value)(Config&);
  bool local = false;  // concerns a host alone: ranks of one run may differ in it
  Limits limits = {};
  std::vector<std::string_view> choices = {};  // of a string; empty = any
  bool required = false;                       // a path that must be given
  std::string_view unit = {};
  std::string_view meaning = {};
  std::string_view memory = {};  // what it costs; empty = nothing

  [[nodiscard]] std::string_view section() const { return name.substr(0, name.find('.')); }
  [[nodiscard]] std::string_view leaf() const { return name.substr(name.find('.') + 1); }
};

struct Section {
  std::string_view name, meaning;
};

[[nodiscard]] std::span<const Key> config_keys();  // grouped by section, in the order of config_sections()
[[nodiscard]] std::span<const Section> config_sections();
[[nodiscard]] const Key* find_key(std::string_view name);  // null if there is none

[[nodiscard]] std::string_view type_text(const ValueRef& value);      // "a whole number", ...
[[nodiscard]] std::string value_text(const ValueRef& value);          // as TOML
[[nodiscard]] bool same_value(const ValueRef& a, const ValueRef& b);  // of the same key in two Configs
[[nodiscard]] std::string number_text(double value);  // shortest text that reads back equal, as a TOML float

}  // namespace sluice
