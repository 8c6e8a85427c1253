#include "run/config/same.hpp"

#include <set>

#include "base/printable.hpp"
#include "run/config/toml_text.hpp"
#include "run/config/value.hpp"

namespace sluice {
namespace {

struct Read {
  Config config;
  std::set<std::string_view> given;  // the keys that the text has
};

// The error has its cause alone. Keys of another version of the program are left out.
Result<Read> read(std::string_view toml) {
  Read found;
  try {
    const toml::table root = parse_toml(toml);
    for (const Key& key : config_keys()) {
      const toml::node* const value = root[key.section()][key.leaf()].node();
      if (!value) continue;
      if (const auto misfit = assign(key, *value, found.config)) return Error{"", "", misfit->cause, ""};
      found.given.insert(key.name);
    }
  } catch (const toml::parse_error& error) {
    return Error{"", "", "the configuration is not TOML: " + std::string(error.description()), ""};
  }
  return found;
}

}  // namespace

Status same_training(std::string_view own, std::string_view of_first, const std::string& who) {
  const auto refuse = [&](const std::string& cause) {
    return Error{"ranks", who, printable(cause), "give all ranks the same configuration"};
  };
  Result<Read> mine = read(own), first = read(of_first);
  if (!mine) return refuse(mine.error().cause);
  if (!first) return refuse(first.error().cause + " on rank 0");
  for (const Key& key : config_keys()) {
    if (key.local || !mine->given.contains(key.name)) continue;
    const ValueRef value = key.value(mine->config), there = key.value(first->config);
    const bool is_there = first->given.contains(key.name);
    if (is_there && same_value(value, there)) continue;
    return refuse(std::string(key.name) + " is " + value_text(value) + ", and " +
                  (is_there ? value_text(there) : "not there") + " on rank 0");
  }
  return Done{};
}

}  // namespace sluice
