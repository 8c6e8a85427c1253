#include "run/config/same.hpp"

#include <map>

#include "base/printable.hpp"

namespace sluice {
namespace {

bool is_local(const std::string& section, const std::string& key) {
  return (section == "data" && (key == "train" || key == "val" || key == "synth")) || section == "budget" ||
         section == "pipeline" || (section == "log" && key != "every") ||
         (section == "train" && key == "threads");
}

// "section.key" to value, without those that may differ.
std::map<std::string, std::string> shared_keys(std::string_view toml) {
  std::map<std::string, std::string> keys;
  std::string section;
  while (!toml.empty()) {
    const std::string line(toml.substr(0, toml.find('\n')));
    toml.remove_prefix(std::min(line.size() + 1, toml.size()));
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[') && line.ends_with(']'))
      section = line.substr(1, line.size() - 2);
    else if (equals != std::string::npos && !is_local(section, line.substr(0, equals)))
      keys[section + "." + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return keys;
}

}  // namespace

Status same_training(std::string_view own, std::string_view of_first, const std::string& who) {
  const auto mine = shared_keys(own), first = shared_keys(of_first);
  for (const auto& [key, value] : mine) {
    const auto other = first.find(key);
    const std::string there = other == first.end() ? "not there" : other->second;
    if (there != value)
      return Error{"ranks", who, printable(key + " is " + value + ", and " + there) + " on rank 0",
                   "give all ranks the same configuration"};
  }
  return Done{};
}

}  // namespace sluice
