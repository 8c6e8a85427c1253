#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/files/durable.hpp"
#include "base/files/regular.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "graph/figures/dot.hpp"
#include "model/train/train_step.hpp"
#include "run/plan/run_plan.hpp"

extern char** environ;

namespace sluice {
namespace fs = std::filesystem;
namespace {

// The graph of a configuration, as it will run here. Data that is not there yet counts as an empty index.
Result<std::string> planned_dot(const Config& config, const std::string& title) {
  std::size_t index_bytes = 0;
  if (fs::exists(config.data.train) && fs::exists(config.data.val)) {
    Result<DataSets> sets = scan_data(config);
    if (!sets) return sets.error();
    index_bytes = sets->train.index_bytes() + sets->val.index_bytes();
  }
  // A CUDA preset is drawn anywhere; "auto" as what this machine has.
  std::string device = config.model.device;
  if (device == "auto") {
    const Result<std::string> here = resolve_device(device);
    device = here ? *here : "cpu";
  }
  const Result<RunPlan> plan = plan_run(config, this_machine(), device, index_bytes);
  if (!plan) return plan.error();
  return to_dot(planned_figures(plan->pipeline), title + ", " + config.model.arch + " on " + device);
}

Result<std::string> run_dot(const fs::path& run) {
  InputFile in((run / "graph.dot").string());
  if (in.missing())
    return Error{"graph", run.string(), "has no graph.dot", "give a configuration or a run folder"};
  if (!in.opened())
    return Error{"graph", (run / "graph.dot").string(), in.cause(), "give another run folder"};
  std::ostringstream text;
  text << in.rdbuf();
  return printable_lines(text.str());
}

// Through Graphviz's `dot`, by way of a temporary file.
Result<std::string> to_svg(const std::string& dot) {
  char name[] = "/tmp/sluice-graph-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0) return Error{"graph", name, std::strerror(errno), ""};
  const bool written = write(fd, dot.data(), dot.size()) == static_cast<ssize_t>(dot.size());
  close(fd);
  const std::string svg = std::string(name) + ".svg";
  Result<std::string> result = Error{"graph", name, "cannot be written", ""};
  if (written) {
    std::string program = "dot", format = "-Tsvg", out = "-o" + svg;
    char* words[] = {program.data(), format.data(), out.data(), name, nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawnp(&child, "dot", nullptr, nullptr, words, environ) != 0)
      result =
          Error{"graph", "dot", "Graphviz is not installed", "apt-get install graphviz, or use --format dot"};
    else if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
      result = Error{"graph", "dot", "Graphviz failed", "look at --format dot"};
    else {
      std::ifstream in(svg);
      std::ostringstream text;
      text << in.rdbuf();
      result = text.str();
    }
  }
  unlink(name);
  unlink(svg.c_str());
  return result;
}

}  // namespace

int graph_command(ConfigArguments what, const std::string& format, const std::string& output) {
  Result<std::string> text = std::string();
  if (fs::is_directory(what.file)) {
    text = run_dot(what.file);
  } else {
    const std::optional<Config> config = load_or_complain(what);
    if (!config) return exit_usage;
    text = planned_dot(*config, what.file);
  }
  if (text && format == "svg") text = to_svg(*text);
  if (!text) {
    complain(text.error());
    return exit_usage;
  }
  if (output.empty()) {
    std::cout << *text;
    return exit_done;
  }
  const std::span<const std::byte> part = std::as_bytes(std::span(*text));
  if (const Status written = write_output("graph", output, {&part, 1}); !written) {
    complain(written.error());
    return exit_failed;
  }
  return exit_done;
}

}  // namespace sluice
