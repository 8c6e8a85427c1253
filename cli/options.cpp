#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/printable.hpp"
#include "run/config/config.hpp"
#include "run/session/ending.hpp"

namespace sluice {

Option& Option::required() { return option_->required(), *this; }
Option& Option::hidden() { return option_->group(""), *this; }
Option& Option::shows_default() { return option_->capture_default_str(), *this; }
Option& Option::type(const char* name) { return option_->type_name(name), *this; }
Option& Option::range(int low, int high) { return option_->check(CLI::Range(low, high)), *this; }
Option& Option::range(double low, double high) { return option_->check(CLI::Range(low, high)), *this; }
Option& Option::positive() { return option_->check(CLI::PositiveNumber), *this; }
Option& Option::one_of(const std::vector<std::string>& choices) {
  return option_->check(CLI::IsMember(choices)), *this;
}

Option Options::option(const char* name, OptionValue value, const char* what) {
  return Option(
      *std::visit([&](auto* held) { return app_.add_option(name, *held, what); }, std::move(value)));
}

void Options::flag(const char* name, bool& value, const char* what) { app_.add_flag(name, value, what); }

Option Options::config(ConfigArguments& arguments, const char* what) {
  Option file = option("config", &arguments.file, what);
  app_.add_option("--set", arguments.sets,
                  "Override a key of the configuration: --set train.batch=64; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  return file;
}

void Options::json(bool& value, const char* what) { flag("--json", value, what); }

void Options::plot(std::string& file) {
  option("-o,--output", &file, "Draw a plot into this file too").type("FILE.svg");
}

void Options::command(const Command& command) {
  CLI::App& app = *app_.add_subcommand(command.name, command.what);
  Options options(app, words_, runs_);
  if (Run run = command.add(options)) runs_.emplace_back(&app, std::move(run));
}

void Options::needs_command() { app_.require_subcommand(1); }

Run parse_words(const Program& program, const std::vector<std::string>& words) {
  CLI::App app{program.what, program.name};
  app.require_subcommand(0, 1);
  // Its messages quote words of the command line.
  app.failure_message([](const CLI::App* which, const CLI::Error& error) {
    return CLI::FailureMessage::simple(
        which, CLI::Error(error.get_name(), printable(error.what()), error.get_exit_code()));
  });
  Options::Runs runs;
  Options options(app, words, runs);
  bool version = false;
  options.flag("--version", version, "Versions of sluice and its libraries");
  for (const Command& command : program.commands) options.command(command);

  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::ParseError& error) {
    return [code = app.exit(error) == 0 ? exit_done : exit_usage] { return code; };
  }
  if (version) return program.version;
  for (const auto& [which, run] : runs)
    if (*which) return run;
  std::cout << app.help();
  return [code = words.size() > 1 ? exit_usage : exit_done] { return code; };
}

}  // namespace sluice
