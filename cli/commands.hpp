// The commands, for main.cpp to list. Each function adds a command's options and gives what it does, with the
// exit code: 0 done, 1 the run failed, 2 bad usage or configuration, 129/130/143 stopped by a signal.
#pragma once

#include "cli/common.hpp"
#include "cli/options.hpp"

namespace sluice {

Run add_bench(Options& to);
Run add_config(Options& to);
Run add_doctor(Options& to);
Run add_eval(Options& to);
Run add_export(Options& to);
Run add_graph(Options& to);
Run add_lr_find(Options& to);
Run add_plan(Options& to);
Run add_schedule(Options& to);
Run add_show(Options& to);
Run add_synth(Options& to);
Run add_train(Options& to);
Run add_tune(Options& to);

}  // namespace sluice
