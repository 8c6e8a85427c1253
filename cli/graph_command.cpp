#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/descriptor.hpp"
#include "base/files/durable.hpp"
#include "base/files/regular.hpp"
#include "base/files/write.hpp"
#include "base/printable.hpp"
#include "base/process/child.hpp"
#include "cli/commands.hpp"
#include "graph/figures/dot.hpp"
#include "model/train/train_step.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// The graph of a configuration, as it will run here. Data that is not there yet counts as an empty index.
Result<std::string> planned_dot(const Config& config, const std::string& title) {
  std::size_t index_bytes = 0;
  if (fs::exists(config.data.train) && fs::exists(config.data.val)) {
    Result<DataSets> sets = scan_data(config);
    if (!sets) return sets.error();
    index_bytes = sets->index_bytes();
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

// Through Graphviz's `dot`, by way of a temporary file. What it draws goes to memory: another name beside the
// file's would be one at which somebody could plant a link.
Result<std::string> to_svg(const std::string& dot) {
  char name[] = "/tmp/sluice-graph-XXXXXX";
  const Descriptor file(mkostemp(name, O_CLOEXEC));
  if (file.get() < 0) return Error{"graph", name, std::strerror(errno), ""};
  const bool written = write_all(file.get(), dot) == dot.size();
  ChildEnd end;
  if (written)
    end = run_child({.words = {"dot", "-Tsvg", name}, .program = "dot", .limit = std::chrono::minutes(10)});
  unlink(name);
  if (!written) return Error{"graph", name, "cannot be written", ""};
  if (end.code == -1)
    return Error{"graph", "dot", "Graphviz is not installed",
                 "apt-get install graphviz, or use --format dot"};
  std::cerr << end.err;
  if (end.code != 0) return Error{"graph", "dot", "Graphviz failed", "look at --format dot"};
  return end.out;
}

}  // namespace

static int graph_command(const ConfigArguments& what, const std::string& format, const std::string& output) {
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

Run add_graph(Options& to) {
  struct Asked {
    ConfigArguments what;
    std::string format = "dot", output;
  };
  const auto asked = std::make_shared<Asked>();
  to.config(asked->what, "Configuration file or run folder").required();
  to.option("--format", &asked->format, "dot or svg").one_of({"dot", "svg"});
  to.option("-o,--output", &asked->output, "Write to this file instead of stdout");
  return [asked] { return graph_command(asked->what, asked->format, asked->output); };
}

}  // namespace sluice
