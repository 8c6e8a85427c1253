#include "run/config/value.hpp"

#include <algorithm>
#include <cmath>

#include "base/nearest.hpp"
#include "base/printable.hpp"

namespace sluice {
namespace {

std::string kind(const toml::node& value) {
  switch (value.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a section";
    default:
      return "a date or time";
  }
}

// Each overload reads one type: true if the value is of that type, with `out` filled in.
bool read(const toml::node& value, bool& out) {
  if (const auto* held = value.as_boolean()) return out = held->get(), true;
  return false;
}

bool read(const toml::node& value, std::int64_t& out) {
  if (const auto* held = value.as_integer()) return out = held->get(), true;
  return false;
}

bool read(const toml::node& value, double& out) {
  if (const auto* held = value.as_floating_point()) return out = held->get(), true;
  if (const auto* held = value.as_integer()) return out = static_cast<double>(held->get()), true;
  return false;
}

bool read(const toml::node& value, std::string& out) {
  if (const auto* held = value.as_string()) return out = held->get(), true;
  return false;
}

bool read(const toml::node& value, std::filesystem::path& out) {
  std::string text;
  return read(value, text) && (out = text, true);
}

bool read(const toml::node& value, Count& out) {
  std::string text;
  std::int64_t number = 0;
  if (read(value, number)) return out = number, true;
  return read(value, text) && text == "auto" && (out.reset(), true);
}

bool read(const toml::node& value, Range& out) {
  const toml::array* const list = value.as_array();
  return list && list->size() == 2 && read((*list)[0], out[0]) && read((*list)[1], out[1]);
}

bool read(const toml::node& value, std::vector<std::string>& out) {
  const toml::array* const list = value.as_array();
  if (!list) return false;
  out.resize(list->size());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!read((*list)[i], out[i])) return false;
  return true;
}

struct Assign {
  const Key& key;
  const toml::node& value;

  [[nodiscard]] Misfit misfit(std::string cause, std::string hint) const {
    return {std::string(key.name) + " " + std::move(cause), std::move(hint)};
  }

  [[nodiscard]] Misfit wrong_type(const ValueRef& ref) const {
    Config defaults;
    const std::string like = value_text(key.value(defaults));
    std::string is = kind(value);
    if (const auto* text = value.as_string()) is += " (\"" + text->get() + "\")";
    return misfit("must be " + std::string(type_text(ref)) + ", is " + is,
                  key.required ? "" : "the default is " + like);
  }

  [[nodiscard]] std::optional<Misfit> outside(double number, const std::string& shown) const {
    if (!std::isfinite(number)) return misfit("must be a finite number, is " + shown, "");
    if (key.limits.allow(number)) return std::nullopt;
    return misfit("must be " + key.limits.text() + ", is " + shown, "");
  }

  [[nodiscard]] std::optional<Misfit> fault(bool) const { return std::nullopt; }
  [[nodiscard]] std::optional<Misfit> fault(std::int64_t v) const {
    return outside(static_cast<double>(v), std::to_string(v));
  }
  [[nodiscard]] std::optional<Misfit> fault(double v) const { return outside(v, number_text(v)); }
  [[nodiscard]] std::optional<Misfit> fault(const Count& v) const { return v ? fault(*v) : std::nullopt; }
  [[nodiscard]] std::optional<Misfit> fault(const std::filesystem::path&) const { return std::nullopt; }
  [[nodiscard]] std::optional<Misfit> fault(const std::vector<std::string>&) const { return std::nullopt; }
  [[nodiscard]] std::optional<Misfit> fault(const Range& v) const {
    for (const double number : v)
      if (auto wrong = fault(number)) return wrong;
    if (v[0] <= v[1]) return std::nullopt;
    return misfit("starts at " + number_text(v[0]) + " and ends at " + number_text(v[1]),
                  "write the smaller number first");
  }
  [[nodiscard]] std::optional<Misfit> fault(const std::string& v) const {
    if (key.choices.empty() || std::ranges::find(key.choices, v) != key.choices.end()) return std::nullopt;
    std::string list;
    for (const std::string_view choice : by_distance(v, key.choices))
      list += (list.empty() ? "\"" : ", \"") + std::string(choice) + "\"";
    const auto meant = nearest(v, key.choices);
    return misfit("is \"" + v + "\", which is not one of " + list,
                  meant ? "did you mean \"" + std::string(*meant) + "\"?" : "");
  }
  [[nodiscard]] std::optional<Misfit> fault(Size v) const {
    if (key.limits.allow(static_cast<double>(v.bytes))) return std::nullopt;
    return misfit("must be from " + size_text({static_cast<std::uint64_t>(key.limits.low)}) + " to " +
                      size_text({static_cast<std::uint64_t>(key.limits.high)}) + ", is " + size_text(v),
                  "");
  }

  // A path ends at a NUL byte for the system, not for the program: the two would mean different files. The
  // run's config.toml can only say UTF-8.
  [[nodiscard]] std::optional<Misfit> unsound(const std::string& text) const {
    if (text.find('\0') != std::string::npos)
      return misfit("holds a NUL byte (\"" + text + "\")", "remove the \\u0000");
    if (!is_utf8(text))
      return misfit("is not UTF-8 (\"" + text + "\")", "give the file or folder another name");
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Misfit> unsound_text() const {
    if (const auto* text = value.as_string()) return unsound(text->get());
    if (const toml::array* const list = value.as_array())
      for (const toml::node& item : *list)
        if (const auto* text = item.as_string())
          if (auto wrong = unsound(text->get())) return wrong;
    return std::nullopt;
  }

  template <class T>
  std::optional<Misfit> operator()(T* into) const {
    if (auto wrong = unsound_text()) return wrong;
    T fresh{};
    if (!read(value, fresh)) return wrong_type(into);
    if (auto wrong = fault(fresh)) return wrong;
    *into = std::move(fresh);
    return std::nullopt;
  }

  template <class T>
  std::optional<Misfit> size(T* into) const {
    std::string text;
    std::int64_t bytes = 0;
    if (read(value, bytes))
      text = std::to_string(bytes);
    else if (!read(value, text))
      return wrong_type(into);
    auto parsed = parse_size(text);
    if (!parsed)
      return misfit("must be " + std::string(type_text(into)) + ": " + parsed.error().cause,
                    parsed.error().hint);
    if (auto wrong = fault(*parsed)) return wrong;
    *into = *parsed;
    return std::nullopt;
  }

  std::optional<Misfit> operator()(Size* into) const { return size(into); }
  std::optional<Misfit> operator()(SizeOrAuto* into) const {
    if (const auto* text = value.as_string(); text && text->get() == "auto")
      return into->reset(), std::nullopt;
    return size(into);
  }
};

}  // namespace

std::optional<Misfit> assign(const Key& key, const toml::node& value, Config& config) {
  return std::visit(Assign{key, value}, key.value(config));
}

}  // namespace sluice
