// What a command takes from the command line. Each command adds its own options here; CLI11, which takes
// seconds to compile, stays behind it in options.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice {

struct ConfigArguments;
class Options;

// A command, once its words are parsed; gives the exit code.
using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* what;         // a line of help
  Run (*add)(Options& to);  // adds its options and tells what it does; nothing: its sub-commands do it
};

// Where a word goes; the alternative is also its type. The value must live as long as the command's Run.
using OptionValue = std::variant<std::string*, int*, unsigned*, std::int64_t*, std::uint64_t*, double*,
                                 std::optional<int>*, std::optional<std::uint64_t>*, std::optional<double>*>;

// One option, to say more about it. What it shows in the help stands in the order of the calls.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option& required();
  Option& hidden();                // not in the help
  Option& shows_default();         // in the help: the value as it is now
  Option& type(const char* name);  // in the help, instead of the value's own: "FILE.svg"
  Option& range(int low, int high);
  Option& range(double low, double high);
  Option& positive();
  Option& one_of(const std::vector<std::string>& choices);

 private:
  CLI::Option* option_;
};

class Options {
 public:
  using Runs = std::vector<std::pair<CLI::App*, Run>>;
  Options(CLI::App& app, std::span<const std::string> words, Runs& runs)
      : app_(app), words_(words), runs_(runs) {}

  // `name` is "--name", "-n,--name", or "name" for a word that stands by itself.
  Option option(const char* name, OptionValue value, const char* what);
  void flag(const char* name, bool& value, const char* what);
  // A configuration with its --set words, as most commands take it.
  Option config(ConfigArguments& arguments, const char* what = "Configuration file (TOML)");
  void json(bool& value, const char* what = "Print one JSON object instead of a table");  // --json
  void plot(std::string& file);                                                           // -o FILE.svg

  void command(const Command& command);
  void needs_command();  // one of them must be given

  // The whole command line, with the program's name in front.
  [[nodiscard]] std::span<const std::string> words() const { return words_; }

 private:
  CLI::App& app_;
  std::span<const std::string> words_;
  Runs& runs_;
};

struct Program {
  const char* name;
  const char* what;
  std::span<const Command> commands;
  Run version;  // what --version does
};

// What the words ask for. Help, and what is wrong with the words, is printed before this returns: the Run
// then has the exit code alone.
[[nodiscard]] Run parse_words(const Program& program, const std::vector<std::string>& words);

}  // namespace sluice
