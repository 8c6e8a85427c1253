#include <iostream>

#include "cli/commands.hpp"

namespace sluice {

int config_command(const ConfigArguments& arguments, bool reference_only) {
  if (reference_only) {
    std::cout << reference();
    return exit_done;
  }
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  std::cout << to_toml(*config);
  return exit_done;
}

}  // namespace sluice
