#include "cli/tune/table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace sluice {
namespace {

std::string join(const std::vector<std::string>& words, const char* between, const char* none) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text.empty() ? none : text;
}

std::string setting_text(const TuneReport& r, const TrialRow& row) {
  return join(changes(r.as_configured, row.setting), " ", "as configured");
}

double epoch_seconds(const TuneReport& r, const TrialFigures& f) {
  return f.images_per_s > 0 ? static_cast<double>(r.train_images) / f.images_per_s : 0;
}

std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

// The names of the options that a row is, or how far it is behind.
std::string verdict(const TuneReport& r, std::size_t number) {
  const TrialRow& row = r.rows[number];
  if (!row.figures) return printable(row.failure);
  const std::optional<TuneOptions> options = choose_options(r.rows);
  std::vector<std::string> names;
  for (const char* name : tune_option_names)
    if (option_row(*options, name) == number) names.emplace_back(name);
  const double fastest = r.rows[options->aggressive].figures->images_per_s;
  return join(names, ", ",
              fmt::format("{:.0f} % slower", 100 * (1 - row.figures->images_per_s / fastest)).c_str());
}

std::vector<std::string> cells(const TuneReport& r, std::size_t number) {
  const TrialRow& row = r.rows[number];
  if (!row.figures) return {setting_text(r, row), "-", "-", "-", "-", "-", verdict(r, number)};
  const TrialFigures& f = *row.figures;
  return {setting_text(r, row),
          fmt::format("{:.1f}", f.images_per_s),
          fmt::format("{:.0f} %", 100 * f.data_wait),
          readable_bytes(f.ram),
          f.vram > 0 ? readable_bytes(f.vram) : "-",
          time_text(epoch_seconds(r, f)),
          verdict(r, number)};
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - line[i].size(), ' ');
      const bool last = i + 1 == line.size(), left = i == 0 || last;
      text += left ? line[i] + (last ? "" : pad + "  ") : pad + line[i] + "  ";
    }
    text += "\n";
  }
  return text;
}

std::string option_line(const TuneReport& r, const char* name, const TrialRow& row) {
  const std::string sets = join(changes(r.as_configured, row.setting), " --set ", "");
  return fmt::format("{:<13} {:.1f} images/s, total batch {}, learning rate {:.4g} at its peak: ", name,
                     row.figures->images_per_s, row.setting.total_batch(), tuned_lr(r, row.setting)) +
         (sets.empty() ? "as configured" : "--set " + sets) + "\n";
}

}  // namespace

double tuned_lr(const TuneReport& r, const TuneSetting& setting) {
  return r.base_lr * static_cast<double>(setting.total_batch()) / static_cast<double>(r.base_batch);
}

std::string trial_line(const TuneReport& r, const TrialRow& row) {
  const std::string setting = setting_text(r, row);
  if (!row.figures) return setting + ": " + printable(row.failure);
  return setting + ": " +
         fmt::format("{:.1f} images/s, waited {:.0f} %, ", row.figures->images_per_s,
                     100 * row.figures->data_wait) +
         readable_bytes(row.figures->ram) + " RAM";
}

std::string tune_text(const TuneReport& r) {
  std::vector<std::vector<std::string>> lines = {
      {"setting", "images/s", "data wait", "RAM", "VRAM", "epoch", "verdict"}};
  for (std::size_t i = 0; i < r.rows.size(); ++i) lines.push_back(cells(r, i));
  std::string text = aligned(lines);
  const std::optional<TuneOptions> options = choose_options(r.rows);
  if (!options) return text + "\nno trial came to figures\n";
  text += "\n";
  for (const char* name : tune_option_names) text += option_line(r, name, r.rows[option_row(*options, name)]);
  text += fmt::format("optim.lr stays {:.6g}: it is for a total batch of {} and the run scales it\n",
                      r.base_lr, r.base_batch);
  if (!r.written.empty()) text += "wrote the " + r.chosen + " option to " + printable(r.written) + "\n";
  return text;
}

nlohmann::ordered_json tune_json(const TuneReport& r) {
  using Json = nlohmann::ordered_json;
  Json out = {{"interrupted", r.interrupted}, {"train_images", r.train_images}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < r.rows.size(); ++i) {
    const TrialRow& row = r.rows[i];
    Json json = {{"set", changes(r.as_configured, row.setting)}, {"total_batch", row.setting.total_batch()}};
    if (row.figures) {
      const TrialFigures& f = *row.figures;
      json["images_per_s"] = f.images_per_s;
      json["data_wait"] = f.data_wait;
      json["ram"] = f.ram;
      json["vram"] = f.vram;
      json["epoch_seconds"] = epoch_seconds(r, f);
      json["bound_by"] = f.bound_by;
    }
    json["verdict"] = verdict(r, i);
    out["rows"].push_back(std::move(json));
  }
  if (const std::optional<TuneOptions> options = choose_options(r.rows)) {
    for (const char* name : tune_option_names) {
      const std::size_t row = option_row(*options, name);
      out["options"][name] = {{"row", row},
                              {"set", changes(r.as_configured, r.rows[row].setting)},
                              {"lr", tuned_lr(r, r.rows[row].setting)}};
    }
    out["chosen"] = r.chosen;
  }
  if (!r.written.empty()) out["written"] = r.written;
  return out;
}

}  // namespace sluice
