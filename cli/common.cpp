#include <iostream>

#include "cli/commands.hpp"

namespace sluice {

std::optional<Config> load_or_complain(const ConfigArguments& arguments) {
  Loaded loaded = load_config(arguments.file, arguments.sets);
  for (const Error& error : loaded.errors) complain(error);
  if (!loaded.errors.empty()) {
    if (loaded.errors.size() > 1)
      std::cerr << "sluice: " << loaded.errors.size() << " errors in the configuration\n";
    return std::nullopt;
  }
  return loaded.config;
}

}  // namespace sluice
