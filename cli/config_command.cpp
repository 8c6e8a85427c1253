#include <iostream>

#include "cli/commands.hpp"

namespace sluice {

Run add_config(Options& to) {
  struct Asked {
    ConfigArguments config;
    bool reference = false;
  };
  const auto asked = std::make_shared<Asked>();
  to.config(asked->config);
  to.flag("--reference", asked->reference, "Print what every key means instead (docs/configuration.md)");
  return [asked]() -> int {
    if (asked->reference) {
      std::cout << reference();
      return exit_done;
    }
    if (asked->config.file.empty()) {
      std::cerr << "sluice: config: give a configuration file, or --reference\n";
      return exit_usage;
    }
    const std::optional<Config> config = load_or_complain(asked->config);
    if (!config) return exit_usage;
    std::cout << to_toml(*config);
    return exit_done;
  };
}

}  // namespace sluice
