// The command line. One sub-command, one file; this one only knows their names.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "base/process/descriptors.hpp"
#include "base/thread_limit.hpp"
#include "cli/commands.hpp"
#include "cli/leave.hpp"
#include "model/device/version.hpp"

namespace {

using namespace sluice;

constexpr Command commands[] = {
    {"train", "Train a network", add_train},
    {"config", "Print the resolved configuration as TOML", add_config},
    {"graph", "Draw the graph of a configuration, or of a run with its figures", add_graph},
    {"schedule", "Print the learning rate over a run", add_schedule},
    {"plan", "Print the memory, steps and time that a configuration will take", add_plan},
    {"eval", "Validate a checkpoint over the whole of data.val", add_eval},
    {"lr-find", "Find a learning rate: train a little, with a rising rate", add_lr_find},
    {"export", "Write a checkpoint's weights for Python, with torchvision's names", add_export},
    {"doctor", "Check this machine, and a configuration with one real step", add_doctor},
    {"tune", "Try batch sizes, threads and read-ahead in short real runs", add_tune},
    {"synth", "Make a labelled, learnable JPEG tree for trying things out", add_synth},
    {"bench", "Measure a part of the run by itself", add_bench},
    {"show", "One batch as the network will get it", add_show},
};

int print_version() {
  std::cout << version_text() << "\n";
  return exit_done;
}

int run(const std::vector<std::string>& words) {
  const Run asked =
      parse_words({.name = "sluice",
                   .what = "Trains image networks from JPEGs, inside a RAM budget that cannot be overrun.",
                   .commands = commands,
                   .version = print_version},
                  words);
  try {
    return asked();
  } catch (const std::exception& error) {
    complain(as_error("", error));
    return exit_failed;
  }
}

}  // namespace

int main(int count, char** words) {
  if (!fill_standard_descriptors()) return exit_failed;  // and there is nobody to tell
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write error like any other
  static char results[256 * 1024];
  if (isatty(STDOUT_FILENO) == 0)  // written in one go at the end, so that what fails has its reason
    std::setvbuf(stdout, results, _IOFBF, sizeof results);
  return leave(run({words, words + count}));
}
