#include "cli/train_setup.hpp"

#include <algorithm>
#include <span>

#include "cli/fit.hpp"
#include "cli/run_folder.hpp"
#include "cli/same_config.hpp"
#include "cli/synth_tree.hpp"
#include "graph/printable.hpp"
#include "graph/text.hpp"
#include "graph/thread_limit.hpp"
#include "model/checksum.hpp"
#include "model/durable_file.hpp"
#include "model/heartbeat.hpp"
#include "model/version.hpp"
#include "model/weights_file.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Records and quarantine go back to where the checkpoint stood.
Status cut_back(TrainerOptions& o) {
  const json state = o.resume ? o.resume->state : json::object();
  Result<std::size_t> kept = cut_lines(o.folder / "metrics.jsonl", state.value("records", std::size_t{0}));
  if (!kept) return kept.error();
  o.records = *kept;
  kept = cut_lines(o.folder / quarantine_name(0),
                   state.value("bad", json::object()).value("lines", std::size_t{0}));
  if (!kept) return kept.error();
  if (o.resume) o.resume->state["bad"]["lines"] = *kept;
  return Done{};
}

// The lists of ranks that this run does not have any more: who has their images now lists them again.
Status cut_former_ranks(const TrainerOptions& o) {
  const Result<std::uint64_t> first = first_batch(o);
  if (!first) return first.error();
  const BatchPlan from = o.sequence.at(*first);
  for (int rank = o.place.world; fs::exists(o.folder / quarantine_name(rank)); ++rank)
    if (const Result<std::size_t> cut = cut_quarantine(o.folder / quarantine_name(rank), from); !cut)
      return cut.error();
  return Done{};
}

// Finds the run to go on with and, once it is locked, the checkpoint to go on from.
Status take_up(TrainSetup& p, const Config& config, const ConfigArguments& arguments,
               const std::string& what) {
  const Result<fs::path> run = folder_to_resume(what, config, arguments.file);
  if (!run) return run.error();
  std::optional<Resume> found;
  if (fs::is_directory(*run)) {
    if (Status locked = lock_run_folder(*run); !locked) return locked;
    Result<std::optional<Resume>> looked = find_resume(what, *run);
    if (!looked) return looked.error();
    found = std::move(*looked);
    fs::create_directories(*run / "checkpoints");
    p.trainer.folder = *run;  // without a checkpoint, it has nothing to lose and begins again
  }
  if (!found) {
    p.notes.push_back("no checkpoint to resume from yet: starting anew");
    return Done{};
  }
  for (Resume::Damaged& damaged : found->passed_over) {
    p.notes.push_back("passed over: " + damaged.reason);
    p.damaged.push_back(std::move(damaged.file));
  }
  p.trainer.resume = std::move(found->snapshot);
  p.notes.push_back("going on from " + printable(p.trainer.resume->source));
  return Done{};
}

// What rank 0 does, and who is alone: nothing is changed before all is known to be fine.
Status open_run(TrainSetup& p, const Config& config, const ConfigArguments& arguments,
                const std::string& resume) {
  if (!resume.empty())
    if (Status taken = take_up(p, config, arguments, resume); !taken) return taken;
  if (!config.model.weights.empty() && !p.trainer.resume) {
    Result<Snapshot> weights = read_weights(config.model.weights);
    if (!weights) return weights.error();
    p.trainer.weights = std::move(*weights);
  }
  if (const Result<std::uint64_t> first = first_batch(p.trainer); !first) return first.error();
  const bool made = p.trainer.folder.empty();
  if (made) {
    Result<fs::path> folder = make_run_folder(config, arguments.file);
    if (!folder) return folder.error();
    p.trainer.folder = *folder;
    if (Status locked = lock_run_folder(p.trainer.folder); !locked) return locked;
  }
  for (const fs::path& file : p.damaged) set_aside(file);
  if (Status cut = cut_former_ranks(p.trainer); !cut) return cut;
  if (Status cut = made ? Status(Done{}) : cut_back(p.trainer); !cut) return cut;
  const std::string text = "# " + version_text() + "\n" + p.trainer.config_text;
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return replace_file("run folder", p.trainer.folder / "config.toml", {&part, 1});
}

// Of what the labels mean: the classes, and a sample of the images.
std::string fingerprint(const DataSets& sets) {
  constexpr std::size_t sample = 1000;
  Checksum sum;
  const auto add = [&](std::string text) {
    text += '\n';
    sum.add(std::as_bytes(std::span(text)));
  };
  for (const ImageFolder* folder : {&sets.train, &sets.val}) {
    for (const std::string& name : folder->class_names()) add(name);
    for (std::size_t i = 0; i < sample && i < folder->size(); ++i)
      add(fs::path(folder->path(i * folder->size() / std::min(sample, folder->size()))).filename().string());
  }
  return std::to_string(sum.value());
}

// Rank 0 tells of its run; the others see that theirs is the same, and where to go on.
Status share_run(TrainerOptions& o, const DataSets& sets) {
  json shape = shape_of(o);
  shape["model.device"] = o.device;
  shape["classes and images"] = fingerprint(sets);
  json told = {{"shape", shape},
               {"config", o.config_text},
               {"folder", o.folder.string()},
               {"state", o.resume ? o.resume->state : json()},
               {"source", o.resume ? o.resume->source : ""}};
  const std::string text = told.dump(-1, ' ', false, json::error_handler_t::replace);
  const Result<std::string> heard = o.ranks->from_first("run", o.place.first() ? text : "");
  if (!heard) return heard.error();
  if (o.place.first()) return Done{};
  const json first = json::parse(*heard);
  const std::string rank = "rank " + std::to_string(o.place.rank);
  for (const auto& [key, value] : told["shape"].items())
    if (first["shape"][key] != value)
      return Error{"ranks", rank,
                   key + " is " + value.dump() + ", and " + first["shape"][key].dump() + " on rank 0",
                   "give all ranks the same configuration and data"};
  if (Status same = same_training(o.config_text, first["config"].get<std::string>(), rank); !same) {
    same.error().cause = told_by_peer(same.error().cause);
    return same;
  }
  o.folder = first["folder"].get<std::string>();
  if (first["state"].is_null()) return Done{};
  o.resume.emplace();
  o.resume->state = first["state"];
  o.resume->source = first["source"];
  return Done{};
}

// Only one process makes the tree that data.synth stands for: rank 0, then one on each host that lacks it.
Status make_tree(const Config& config, const Place& place, Ranks* ranks) {
  if (!ranks) return make_synth_tree(config);
  if (!config.data.synth) return Done{};
  if (place.first())
    if (Status made = make_synth_tree(config); !made) return made;
  if (Status met = ranks->meet("synth on rank 0"); !met) return met;
  if (place.local_rank == 0)
    if (Status made = make_synth_tree(config); !made) return made;
  return ranks->meet("synth on each host");
}

}  // namespace

Result<TrainSetup> set_up_training(const Config& config, const ConfigArguments& arguments,
                                   const std::string& resume, const std::string& device, const Place& place,
                                   const std::shared_ptr<Ranks>& ranks) {
  if (Status fits = fits_before_synth(config, device, place); !fits) return fits.error();
  if (Status made = make_tree(config, place, ranks.get()); !made) return made.error();
  Result<DataSets> sets = scan_data(config);
  if (!sets) return sets.error();
  if (Status fits = fits_here(config, device, data_of(*sets), place); !fits) return fits.error();
  const std::size_t index_bytes = sets->train.index_bytes() + sets->val.index_bytes();
  const Machine machine = this_machine();
  Result<RunPlan> plan =
      plan_run(config, machine, device, index_bytes, static_cast<unsigned>(place.local_world),
               static_cast<std::int64_t>(sets->train.class_names().size()));
  if (!plan) return plan.error();
  Result<Sequence> sequence = Sequence::make(run_shape(config, *sets, place));
  if (!sequence) return sequence.error();

  const int classes = static_cast<int>(sets->train.class_names().size());
  TrainSetup p{
      std::move(*plan),
      std::make_shared<const DataSets>(std::move(*sets)),
      TrainerOptions{config, *sequence, classes, device, 1, {}, to_toml(config), {}, {}, 0, place, ranks},
      {}};
  p.trainer.torch_threads = p.plan.torch_threads;
  if (Status possible = can_make_threads(p.plan.threads()); !possible) return possible.error();
  if (ranks)  // none makes anything before all have found that they can run
    if (Status met = ranks->meet("plan"); !met) return met.error();
  const auto ranks_here = static_cast<std::size_t>(place.local_world);
  if (const std::size_t planned = ranks_here * p.plan.memory.total();
      planned > machine.memory && !config.budget.enforce)
    p.notes.push_back("planned are " + readable_bytes(planned) + " of RAM on this host, and " +
                      machine.memory_limit + " leaves " + readable_bytes(machine.memory) +
                      ": the run may be killed (budget.enforce = false)");
  if (std::string note = device_note(config.model.device, device); !note.empty())
    p.notes.push_back(std::move(note));
  if (place.first())
    if (Status opened = open_run(p, config, arguments, resume); !opened) return opened.error();
  if (ranks)
    if (Status shared = share_run(p.trainer, *p.sets); !shared) return shared.error();
  const Result<std::uint64_t> first = first_batch(p.trainer);
  if (!first) return first.error();
  p.plan.pipeline.first_batch = p.plan.data.first_batch = *first;
  p.plan.pipeline.batches = sequence->batches();
  if (!place.first()) {
    std::error_code ignored;  // of another host; a bad image that cannot be listed there tells
    fs::create_directories(p.trainer.folder, ignored);
    const Result<std::size_t> cut =
        cut_quarantine(p.trainer.folder / quarantine_name(place.rank), sequence->at(*first));
    if (!cut) return cut.error();
  }
  return p;
}

std::vector<std::string> describe(const TrainSetup& p) {
  const PipelineOptions& o = p.plan.pipeline;
  const Sequence& s = p.trainer.sequence;
  const Place& place = p.trainer.place;
  const auto count = [](std::uint64_t n) { return std::to_string(n); };
  const std::string rank =
      place.alone() ? "" : ", rank " + std::to_string(place.rank) + " of " + std::to_string(place.world);
  const std::string most_readers =
      o.sizing && o.sizing->most.read_threads > o.read_threads
          ? " (up to " + count(o.sizing->most.read_threads) + " if storage is slow)"
          : "";
  std::vector<std::string> lines = {
      version_text() + ", " + p.trainer.config.model.arch + " on " + p.trainer.device + rank +
          ", run folder " + printable(p.trainer.folder.string()),
      count(s.shape().train_images) + " training and " + count(s.shape().val_images) +
          " validation images, " + std::to_string(p.trainer.classes) + " classes; " +
          count(s.steps_per_epoch()) + " steps and " + count(s.val_batches()) +
          " validation batches an epoch",
      "threads: " + count(o.read_threads) + " read" + most_readers + ", " + count(o.decode_threads) +
          " decode, " + count(p.plan.torch_threads) + " torch; RAM of the data path (" +
          p.plan.budget_source + "):" + o.split.table(),
      "planned RAM of the process: " + readable_bytes(p.plan.memory.total()) +
          " (sluice plan lists who takes it)"};
  lines.insert(lines.end(), p.notes.begin(), p.notes.end());
  return lines;
}

}  // namespace sluice
