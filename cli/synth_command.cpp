#include <algorithm>

#include "cli/commands.hpp"

namespace sluice {
int synth_command(const SynthOptions& options) {
  const Status made = synth_with_progress(options);
  if (made) return exit_done;
  complain(made.error());
  return exit_failed;
}

void use_own_data(ConfigArguments& arguments) {
  if (std::ranges::any_of(arguments.sets, [](const std::string& s) { return s.starts_with("data.train="); }))
    arguments.sets.insert(arguments.sets.begin(), "data.synth=false");
}

}  // namespace sluice
