#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/commands.hpp"
#include "graph/printable.hpp"

namespace sluice {
namespace {

Status make(const SynthOptions& options) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  std::cerr << "making " << options.classes * (options.train_per_class + options.val_per_class)
            << " JPEGs in " << printable(options.dir) << "\n";
  Status done = synth(options, [&](std::int64_t made, std::int64_t total) {
    if (terminal && (made % 20 == 0 || made == total))
      std::cerr << "\r  " << made << "/" << total << std::flush;
  });
  if (terminal) std::cerr << "\n";
  return done;
}

}  // namespace

int synth_command(const SynthOptions& options) {
  const Status made = make(options);
  if (made) return exit_done;
  complain(made.error());
  return exit_failed;
}

void use_own_data(ConfigArguments& arguments) {
  if (std::ranges::any_of(arguments.sets, [](const std::string& s) { return s.starts_with("data.train="); }))
    arguments.sets.insert(arguments.sets.begin(), "data.synth=false");
}

Status make_training_tree(const Config& config) {
  return std::filesystem::exists(config.data.train) ? Status(Done{}) : make_synth_tree(config);
}

Status make_synth_tree(const Config& config) {
  namespace fs = std::filesystem;
  if (!config.data.synth || (fs::exists(config.data.train) && fs::exists(config.data.val))) return Done{};
  const fs::path train = config.data.train.lexically_normal(), val = config.data.val.lexically_normal();
  if (train.parent_path() != val.parent_path() || train.filename() != "train" || val.filename() != "val")
    return Error{"config", "data.synth",
                 "can only make DIR/train and DIR/val, not " + printable(train.string()) + " and " +
                     printable(val.string()),
                 "set data.train and data.val to such a pair"};
  SynthOptions options;
  options.dir = train.parent_path().string();
  return make(options);
}

}  // namespace sluice
