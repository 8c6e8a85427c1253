// A plan as a table for people and as JSON for programs.
#include <fmt/core.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "run/config/step_options.hpp"
#include "run/plan/plan.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const std::string& name, std::size_t bytes, const std::string& how) {
  return fmt::format("  {:<24} {:>14}  {}\n", name, readable_bytes(bytes), how);
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

// What is left, or what is missing.
std::string margin(const Room& room) {
  if (room.available == 0) return "what there is is not known";
  const bool fits = room.fits();
  const std::size_t off = fits ? room.available - room.total : room.total - room.available;
  return "of " + readable_bytes(room.available) + ": " + readable_bytes(off) +
         fmt::format(" {} ({:.0f} %)", fits ? "to spare" : "TOO MUCH",
                     100.0 * static_cast<double>(off) / static_cast<double>(room.available));
}

std::string heading(const Plan& p) {
  const PlanRequest& r = p.request;
  const Config& c = r.config;
  const PlanMachine& m = r.machine;
  std::string text = printable(r.config_name) + ": " + c.model.arch + " on " + r.device + ", " +
                     c.model.precision + ", " + task_of(c).size + ", batch " + std::to_string(c.train.batch) +
                     (c.model.recompute ? ", recomputed" : "") + "; " + std::to_string(r.devices) +
                     (r.devices == 1 ? " device" : " devices") +
                     (r.nodes > 1 ? " on each of " + std::to_string(r.nodes) + " hosts" : "") + "\n";
  text += "machine  " + (m.name.empty() ? "this one" : printable(m.name)) + ": " +
          std::to_string(m.host.cpus) + " CPUs, " + readable_bytes(m.host.memory) + " of RAM (" +
          m.host.memory_limit + ")" +
          (m.gpus > 0 ? ", " + std::to_string(m.gpus) + " x " + printable(m.gpu_name) + " with " +
                            readable_bytes(m.gpu_memory)
                      : "") +
          "\n";
  text += "data     " + std::to_string(r.data.train_images) + " training and " +
          std::to_string(r.data.val_images) + " validation images, " + std::to_string(r.data.classes) +
          " classes (" + r.data.source + ")\n";
  if (p.run)
    text += "threads  " + std::to_string(p.run->pipeline.read_threads) + " read, " +
            std::to_string(p.run->pipeline.decode_threads) + " decode, " +
            std::to_string(p.run->torch_threads) + " torch" + (r.devices > 1 ? ", for each rank" : "") +
            (r.devices * p.run->pipeline.decode_threads > m.host.cpus ? "; more decode than there are CPUs"
                                                                      : "") +
            "\nbudget   " + p.run->budget_source + "\n";
  return text;
}

std::string rows(const MemoryPlan& memory) {
  std::string text;
  for (const Owner& o : memory.owners) text += line(o.name, o.bytes, o.how);
  return text;
}

}  // namespace

std::string memory_text(const Plan& p) {
  const unsigned ranks = p.request.devices;
  std::string text =
      std::string("\nRAM of ") + (ranks > 1 ? "each rank" : "the process") + "\n" + rows(p.here.ram.memory);
  if (ranks > 1) {
    text += line("one rank", p.here.ram.memory.total(), "the one that saves");
    text += line("host", p.here.ram.total,
                 std::to_string(ranks) + " ranks, one of them with the copy; " + margin(p.here.ram));
  } else {
    text += line("total", p.here.ram.total, margin(p.here.ram));
  }
  if (p.request.device == "cpu") return text;
  return text + "\nVRAM of each device\n" + rows(p.here.vram.memory) +
         line("total", p.here.vram.total, margin(p.here.vram));
}

namespace {

std::string loader_table(const Plan& p) {
  const LoaderMemory& l = p.loader;
  std::string text = "\nthe same settings in a loader of workers x prefetch x FP32 batches\n";
  text += line("its batches", l.total(),
               std::to_string(l.workers) + " workers (decode threads) x " + std::to_string(l.prefetch) +
                   (p.request.config.pipeline.prefetch ? " batches ahead (pipeline.prefetch)"
                                                       : " batches ahead (the usual)") +
                   " x " + std::to_string(l.batch_bytes) + " bytes; the workers' own memory not counted");
  if (!p.run) return text;
  const std::size_t ours = p.run->pipeline.split.total();
  const double times = static_cast<double>(l.total()) / static_cast<double>(ours);
  return text +
         line("sluice's data path", ours,
              times >= 1
                  ? fmt::format("{:.1f} times less, and everything is counted: files, codec, index", times)
                  : "more, with everything counted: files, codec, index, big lane");
}

std::string steps_table(const Plan& p) {
  const PlanRequest& r = p.request;
  const Scale& s = p.here;
  std::string text = "\nsteps    " + std::to_string(s.steps_per_epoch) + " an epoch and " +
                     std::to_string(s.val_batches) + " validation batches, " + std::to_string(s.steps) +
                     " steps in all (" + std::to_string(r.config.train.epochs) + " epochs" +
                     (r.config.train.max_steps > 0 ? ", train.max_steps" : "") + ")\n";
  text +=
      s.run_seconds > 0
          ? "time     " + duration(s.epoch_seconds) + " an epoch, " + duration(s.run_seconds) +
                " in all at " + fmt::format("{:g}", r.rate) +
                " images/s for each device; a validation image counts a third\n"
          : std::string("time     not known without a rate: give --rate (sluice bench step measures it)\n");
  const std::size_t disk = p.checkpoint * p.checkpoint_files;
  text += "disk     " + readable_bytes(disk) + " for " + std::to_string(p.checkpoint_files) +
          " checkpoints of " + readable_bytes(p.checkpoint) + " at most" +
          (r.disk_free ? ", " + readable_bytes(*r.disk_free) + " free" : "") + "\n";
  return text;
}

std::string why_not(const Scale& s) {
  if (s.fits()) return "";
  return "  does not fit: " + (s.refused ? s.refused->stage : s.ram.fits() ? "VRAM" : "RAM");
}

std::string scaling_table(const Plan& p) {
  std::string text =
      fmt::format("\n{:>7} {:>14} {:>14} {:>10} {:>12} {:>10} {:>11}\n", "devices", "RAM of a host",
                  "VRAM of each", "peak lr", "steps/epoch", "an epoch", "the run");
  for (const Scale& s : p.scaling) {
    const bool timed = s.run_seconds > 0;
    text += fmt::format("{:>7} {:>14} {:>14} {:>10.4g} {:>12} {:>10} {:>11}{}\n", s.devices,
                        readable_bytes(s.ram.total), s.vram.total > 0 ? readable_bytes(s.vram.total) : "-",
                        s.lr, s.steps_per_epoch, timed ? duration(s.epoch_seconds) : "-",
                        timed ? duration(s.run_seconds) : "-", why_not(s));
  }
  return text + "devices of one host" +
         (p.request.nodes > 1 ? ", on each of " + std::to_string(p.request.nodes) + " hosts" : "") +
         "; the batch of each stays, the total batch and the rate grow; times as if nothing were lost to "
         "it\n";
}

Json room_json(const Room& room) {
  Json owners = Json::array();
  for (const Owner& o : room.memory.owners)
    owners.push_back({{"owner", o.key}, {"name", o.name}, {"bytes", o.bytes}, {"how", o.how}});
  Json out = {{"owners", owners}, {"each_bytes", room.memory.total()}, {"total_bytes", room.total}};
  const bool known = room.available > 0;
  out["available_bytes"] = known ? Json(room.available) : Json(nullptr);
  out["margin_bytes"] =
      known ? Json(static_cast<std::int64_t>(room.available) - static_cast<std::int64_t>(room.total))
            : Json(nullptr);
  out["fits"] = known ? Json(room.fits()) : Json(nullptr);
  return out;
}

Json seconds(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json scale_json(const Scale& s) {
  return {{"devices", s.devices},
          {"ram_bytes", s.ram.total},
          {"vram_bytes", s.vram.total > 0 ? Json(s.vram.total) : Json(nullptr)},
          {"peak_lr", s.lr},
          {"steps_per_epoch", s.steps_per_epoch},
          {"epoch_seconds", seconds(s.epoch_seconds)},
          {"run_seconds", seconds(s.run_seconds)},
          {"fits", s.fits()}};
}

}  // namespace

std::string plan_text(const Plan& p) {
  std::string text = heading(p) + memory_text(p) + loader_table(p) + steps_table(p) + scaling_table(p);
  text += p.fits() ? "\nfits\n" : "\nDOES NOT FIT\n";
  for (const Error& problem : p.problems) text += "  " + problem.text() + "\n";
  return text;
}

nlohmann::ordered_json plan_json(const Plan& p) {
  const PlanRequest& r = p.request;
  const PlanMachine& m = r.machine;
  Json out;
  out["config"] = r.config_name;
  out["arch"] = r.config.model.arch;
  out["device"] = r.device;
  out["precision"] = r.config.model.precision;
  out["image_size"] = r.config.data.image_size;
  out["batch"] = r.config.train.batch;
  out["devices"] = r.devices;
  out["nodes"] = r.nodes;
  out["machine"] = {{"name", m.name},
                    {"cpus", m.host.cpus},
                    {"memory_bytes", m.host.memory},
                    {"memory_limit", m.host.memory_limit},
                    {"gpus", m.gpus},
                    {"gpu_name", m.gpu_name},
                    {"gpu_memory_bytes", m.gpu_memory > 0 ? Json(m.gpu_memory) : Json(nullptr)}};
  out["data"] = {{"train_images", r.data.train_images},
                 {"val_images", r.data.val_images},
                 {"classes", r.data.classes},
                 {"source", r.data.source}};
  if (p.run) {
    out["threads"] = {{"read", p.run->pipeline.read_threads},
                      {"decode", p.run->pipeline.decode_threads},
                      {"torch", p.run->torch_threads}};
    out["budget"] = {{"bytes", p.run->pipeline.split.budget},
                     {"data_path_bytes", p.run->pipeline.split.total()},
                     {"source", p.run->budget_source}};
  }
  out["ram"] = room_json(p.here.ram);
  out["vram"] = r.device == "cpu" ? Json(nullptr) : room_json(p.here.vram);
  out["loader"] = {{"workers", p.loader.workers},
                   {"prefetch", p.loader.prefetch},
                   {"batch_bytes", p.loader.batch_bytes},
                   {"bytes", p.loader.total()}};
  out["steps"] = {
      {"per_epoch", p.here.steps_per_epoch}, {"val_batches", p.here.val_batches}, {"total", p.here.steps}};
  out["time"] = {{"rate", r.rate > 0 ? Json(r.rate) : Json(nullptr)},
                 {"epoch_seconds", seconds(p.here.epoch_seconds)},
                 {"run_seconds", seconds(p.here.run_seconds)}};
  out["disk"] = {{"checkpoint_bytes", p.checkpoint},
                 {"files", p.checkpoint_files},
                 {"bytes", p.checkpoint * p.checkpoint_files},
                 {"free_bytes", r.disk_free ? Json(*r.disk_free) : Json(nullptr)}};
  out["scaling"] = Json::array();
  for (const Scale& s : p.scaling) out["scaling"].push_back(scale_json(s));
  out["fits"] = p.fits();
  out["problems"] = Json::array();
  for (const Error& e : p.problems) out["problems"].push_back(e.text());
  return out;
}

}  // namespace sluice
