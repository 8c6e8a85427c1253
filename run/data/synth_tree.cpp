#include "run/data/synth_tree.hpp"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/printable.hpp"

namespace sluice {

Status synth_with_progress(const SynthOptions& options) {
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
  return synth_with_progress(options);
}

}  // namespace sluice
