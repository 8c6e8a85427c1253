// The command line. One sub-command, one file; this one only knows the words.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.hpp"

int main(int count, char** words) {
  using namespace sluice;
  CLI::App app{"Trains image networks from JPEGs, inside a RAM budget that cannot be overrun.", "sluice"};
  app.require_subcommand(0, 1);
  bool version = false;
  app.add_flag("--version", version, "Versions of sluice and its libraries");

  ConfigArguments arguments;
  const auto takes_config = [&](CLI::App* command, const char* what) {
    command->add_option("config", arguments.file, what)->required();
    command
        ->add_option("--set", arguments.sets,
                     "Override a key of the configuration: --set train.batch=64; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->take_all();
    return command;
  };

  std::string resume;
  CLI::App* train = takes_config(app.add_subcommand("train", "Train a network"), "Configuration file (TOML)");
  train->add_option("--resume", resume, "Go on from a checkpoint: a file, or auto for the newest sound one")
      ->type_name("auto|FILE");

  bool reference_only = false;
  CLI::App* config = app.add_subcommand("config", "Print the resolved configuration as TOML");
  takes_config(config, "Configuration file (TOML)")->get_option("config")->required(false);
  config->add_flag("--reference", reference_only,
                   "Print what every key means instead (docs/configuration.md)");

  std::string format = "dot", output;
  CLI::App* graph = takes_config(
      app.add_subcommand("graph", "Draw the graph of a configuration, or of a run with its figures"),
      "Configuration file or run folder");
  graph->add_option("--format", format, "dot or svg")->check(CLI::IsMember({"dot", "svg"}));
  graph->add_option("-o,--output", output, "Write to this file instead of stdout");

  SynthOptions synth;
  CLI::App* make = app.add_subcommand("synth", "Make a labelled, learnable JPEG tree for trying things out");
  make->add_option("dir", synth.dir, "Gets train/<class>/*.JPEG and val/<class>/*.JPEG")->required();
  make->add_option("--classes", synth.classes, "Classes")->capture_default_str();
  make->add_option("--train-per-class", synth.train_per_class, "Training images of each class")
      ->capture_default_str();
  make->add_option("--val-per-class", synth.val_per_class, "Validation images of each class")
      ->capture_default_str();
  make->add_option("--size", synth.size, "Longer side of most images, in pixels")->capture_default_str();
  make->add_option("--seed", synth.seed, "The same seed gives the same files")->capture_default_str();

  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  try {
    if (version) {
      std::cout << version_text() << "\n";
      return exit_done;
    }
    if (*train) return train_command(arguments, resume);
    if (*config) {
      if (!reference_only && arguments.file.empty()) {
        std::cerr << "sluice: config: give a configuration file, or --reference\n";
        return exit_usage;
      }
      return config_command(arguments, reference_only);
    }
    if (*graph) return graph_command(arguments, format, output);
    if (*make) return synth_command(synth);
  } catch (const std::exception& error) {
    std::cerr << "sluice: " << error.what() << "\n";
    return exit_failed;
  }
  std::cout << app.help();
  return count > 1 ? exit_usage : exit_done;
}
