#include <algorithm>

#include "cli/commands.hpp"
#include "run/data/synth_tree.hpp"

namespace sluice {

void use_own_data(ConfigArguments& arguments) {
  if (std::ranges::any_of(arguments.sets, [](const std::string& s) { return s.starts_with("data.train="); }))
    arguments.sets.insert(arguments.sets.begin(), "data.synth=false");
}

Run add_synth(Options& to) {
  const auto asked = std::make_shared<SynthOptions>();
  to.option("dir", &asked->dir, "Gets train/<class>/*.JPEG and val/<class>/*.JPEG").required();
  to.option("--classes", &asked->classes, "Classes").shows_default();
  to.option("--train-per-class", &asked->train_per_class, "Training images of each class").shows_default();
  to.option("--val-per-class", &asked->val_per_class, "Validation images of each class").shows_default();
  to.option("--size", &asked->size, "Longer side of most images, in pixels").shows_default();
  to.option("--seed", &asked->seed, "The same seed gives the same files").shows_default();
  return [asked]() -> int {
    const Status made = synth_with_progress(*asked);
    if (made) return exit_done;
    complain(made.error());
    return exit_failed;
  };
}

}  // namespace sluice
