// The tree that data.synth stands for.
#pragma once

#include "run/config/config.hpp"
#include "run/data/synth.hpp"

namespace sluice {

// Makes a tree and tells on stderr how far it is.
Status synth_with_progress(const SynthOptions& options);
// Makes the configuration's tree, if it wants one and it is not there yet.
Status make_synth_tree(const Config& config);
// The same, unless data.train is there already: for commands that need nothing else.
Status make_training_tree(const Config& config);

}  // namespace sluice
