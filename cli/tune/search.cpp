#include "cli/tune/search.hpp"

#include <algorithm>

#include "graph/figures/nodes.hpp"

namespace sluice {
namespace {

constexpr double better = 1.02;    // less than this is noise
constexpr double worth_it = 1.03;  // what a doubled batch must bring for another one
constexpr double starved = 0.05;   // a device that waits longer is not fed
constexpr std::int64_t most_reads = 256, most_prefetch = 16, most_batch = 65536;

double rate(const TrialRow& row) { return row.figures ? row.figures->images_per_s : 0; }

// The fastest so far; a later one must be clearly so.
const TrialRow* best_of(const std::vector<TrialRow>& rows) {
  const TrialRow* best = nullptr;
  for (const TrialRow& row : rows)
    if (row.figures && (!best || rate(row) > better * rate(*best))) best = &row;
  return best;
}

template <class Same>
const TrialRow* find(const std::vector<TrialRow>& rows, Same&& same) {
  const auto at = std::ranges::find_if(rows, [&](const TrialRow& row) { return same(row.setting); });
  return at == rows.end() ? nullptr : &*at;
}

bool waits(const TrialRow& row) { return row.figures && row.figures->data_wait > starved; }

std::size_t memory(const TrialRow& row) { return row.figures->ram + row.figures->vram; }

}  // namespace

std::vector<std::string> changes(const TuneSetting& from, const TuneSetting& to) {
  std::vector<std::string> words;
  const auto add = [&](const char* key, std::int64_t TuneSetting::*member) {
    if (from.*member != to.*member) words.push_back(std::string(key) + "=" + std::to_string(to.*member));
  };
  add("train.batch", &TuneSetting::batch);
  add("train.accumulate", &TuneSetting::accumulate);
  add("pipeline.decode_threads", &TuneSetting::decode_threads);
  add("train.threads", &TuneSetting::torch_threads);
  add("pipeline.read_threads", &TuneSetting::read_threads);
  add("pipeline.read_ahead", &TuneSetting::read_ahead);
  add("pipeline.prefetch", &TuneSetting::prefetch);
  return words;
}

std::optional<TuneSetting> TuneSearch::next(double seconds_left, double trial_seconds) const {
  double longest = 0;
  for (const TrialRow& row : rows_) longest = std::max(longest, row.seconds);
  if (seconds_left < (longest > 0 ? longest : trial_seconds) && !rows_.empty()) return std::nullopt;
  return candidate();
}

std::optional<TuneSetting> TuneSearch::candidate() const {
  if (rows_.empty()) return start_.as_configured;
  const TrialRow* best = best_of(rows_);
  if (!best) {  // nothing has worked yet: smaller, until something does
    const TuneSetting& last = rows_.back().setting;
    return last.batch % 2 == 0 ? with_batch(last, last.batch / 2) : std::nullopt;
  }
  // A device that waits is fed first: larger batches tell little before.
  if (auto setting = other_threads(*best)) return setting;
  if (auto setting = more_reads(*best)) return setting;
  if (auto setting = more_prefetch(*best)) return setting;
  if (auto setting = larger_batch(*best)) return setting;
  return less_memory();
}

std::optional<TuneSetting> TuneSearch::with_batch(TuneSetting setting, std::int64_t batch) const {
  if (batch < 1 || batch > most_batch) return std::nullopt;
  if (start_.keep_total) {
    const std::int64_t total = start_.as_configured.total_batch();
    if (total % batch != 0) return std::nullopt;
    setting.accumulate = total / batch;
  }
  setting.batch = batch;
  return setting;
}

// Doubles as long as that pays.
std::optional<TuneSetting> TuneSearch::larger_batch(const TrialRow& best) const {
  std::int64_t largest = 0;
  for (const TrialRow& row : rows_) largest = std::max(largest, row.setting.batch);
  const auto fastest_of = [&](std::int64_t batch) {
    double most = 0;
    for (const TrialRow& row : rows_)
      if (row.setting.batch == batch) most = std::max(most, rate(row));
    return most;
  };
  const double now = fastest_of(largest), before = largest % 2 == 0 ? fastest_of(largest / 2) : 0;
  if (now <= 0 || now < worth_it * before) return std::nullopt;
  return with_batch(best.setting, 2 * largest);
}

std::optional<TuneSetting> TuneSearch::other_threads(const TrialRow& best) const {
  const std::int64_t cpus = start_.cpus;
  std::vector<std::array<std::int64_t, 2>> pairs;  // decode, torch
  if (start_.gpu) {
    if (waits(best))
      for (const std::int64_t decode : {cpus - 2, cpus - 1, cpus, cpus + cpus / 2})
        pairs.push_back({decode, 1});
  } else {
    for (const std::int64_t decode : {std::int64_t{1}, cpus / 4, cpus / 2}) {
      if (decode > 1 && !waits(best)) continue;
      pairs.push_back({decode, cpus});
      pairs.push_back({decode, cpus - decode});
    }
  }
  for (const auto& [decode, torch] : pairs) {
    if (decode < 1 || torch < 1) continue;
    if (find(rows_, [&, d = decode, t = torch](const TuneSetting& s) {
          return s.decode_threads == d && s.torch_threads == t;
        }))
      continue;
    TuneSetting setting = best.setting;
    setting.decode_threads = decode;
    setting.torch_threads = torch;
    return setting;
  }
  return std::nullopt;
}

std::optional<TuneSetting> TuneSearch::more_reads(const TrialRow& best) const {
  if (!waits(best)) return std::nullopt;
  if (best.figures->bound_by != name_of(NodeId::read) && best.figures->bound_by != "budget")
    return std::nullopt;
  TuneSetting setting = best.setting;
  setting.read_threads = std::min(4 * setting.read_threads, most_reads);
  setting.read_ahead = std::max(setting.read_ahead, 2 * setting.read_threads);
  const bool tried =
      find(rows_, [&](const TuneSetting& s) { return s.read_threads == setting.read_threads; });
  return tried ? std::nullopt : std::optional(setting);
}

std::optional<TuneSetting> TuneSearch::more_prefetch(const TrialRow& best) const {
  if (!waits(best)) return std::nullopt;
  TuneSetting setting = best.setting;
  setting.prefetch = std::min(2 * setting.prefetch, most_prefetch);
  const bool tried = find(rows_, [&](const TuneSetting& s) { return s.prefetch == setting.prefetch; });
  return tried ? std::nullopt : std::optional(setting);
}

// For those who share a machine: half the batch, and the fewest batches ahead.
std::optional<TuneSetting> TuneSearch::less_memory() const {
  const TuneSetting& base = start_.as_configured;
  if (base.batch % 2 == 0 && !find(rows_, [&](const TuneSetting& s) { return 2 * s.batch == base.batch; }))
    if (auto setting = with_batch(best_of(rows_)->setting, base.batch / 2)) return setting;
  TuneSetting setting = best_of(rows_)->setting;
  setting.prefetch = 2;
  if (find(rows_, [](const TuneSetting& s) { return s.prefetch == 2; })) return std::nullopt;
  return setting;
}

std::optional<TuneOptions> choose_options(const std::vector<TrialRow>& rows) {
  std::optional<std::size_t> fastest;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].figures && (!fastest || rate(rows[i]) > rate(rows[*fastest]))) fastest = i;
  if (!fastest) return std::nullopt;
  const auto leanest = [&](double share) {
    std::size_t found = *fastest;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].figures && rate(rows[i]) >= share * rate(rows[*fastest]) &&
          memory(rows[i]) < memory(rows[found]))
        found = i;
    return found;
  };
  return TuneOptions{leanest(0.9), leanest(0.97), *fastest};
}

std::size_t option_row(const TuneOptions& options, const std::string& name) {
  if (name == "conservative") return options.conservative;
  return name == "aggressive" ? options.aggressive : options.balanced;
}

}  // namespace sluice
