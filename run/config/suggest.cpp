#include "run/config/suggest.hpp"

#include <algorithm>

#include "base/nearest.hpp"
#include "run/config/keys.hpp"

namespace sluice {
namespace {

std::vector<std::string_view> key_names() {
  std::vector<std::string_view> names;
  for (const Key& key : config_keys()) names.push_back(key.name);
  return names;
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const Section& section : config_sections()) names.push_back(section.name);
  return names;
}

std::string join(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) out += (out.empty() ? "" : ", ") + std::string(word);
  return out;
}

}  // namespace

bool is_section(std::string_view name) {
  return std::ranges::find(config_sections(), name, &Section::name) != config_sections().end();
}

std::string keys_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : config_keys())
    if (key.section() == section) names.push_back(key.leaf());
  return join(names);
}

std::string suggest_key(const std::string& name) {
  if (const auto meant = nearest_key(name, key_names())) return "did you mean " + std::string(*meant) + "?";
  const std::string section = name.substr(0, name.find('.'));
  if (is_section(section)) return "[" + section + "] has " + keys_in(section);
  return "the sections are " + join(section_names());
}

std::string suggest_section(const std::string& name) {
  const auto meant = nearest(name, section_names());
  return meant ? "did you mean [" + std::string(*meant) + "]?" : "the sections are " + join(section_names());
}

}  // namespace sluice
