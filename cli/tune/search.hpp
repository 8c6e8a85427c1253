// Which settings to try next, given what the trials so far have shown: one thing at a time, from the best so
// far, and no further in a direction that did not help. Pure: it runs nothing and reads no clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct TuneSetting {
  std::int64_t batch = 1, accumulate = 1;
  std::int64_t decode_threads = 1, torch_threads = 1;
  std::int64_t read_threads = 16, read_ahead = 64, prefetch = 2;
  bool operator==(const TuneSetting&) const = default;
  [[nodiscard]] std::int64_t total_batch() const { return batch * accumulate; }
};

// What differs, as words for --set.
[[nodiscard]] std::vector<std::string> changes(const TuneSetting& from, const TuneSetting& to);

struct TrialFigures {
  double images_per_s = 0, data_wait = 0;  // data_wait: share of the time that step waited for a batch
  std::size_t ram = 0, vram = 0;           // at most, bytes
  std::string bound_by;                    // as the diagnosis has it
};

struct TrialRow {
  TuneSetting setting;
  std::optional<TrialFigures> figures;  // nothing if it did not come to them
  std::string failure;                  // then: why
  double seconds = 0;                   // that the trial took; 0 if it was refused before it began
};

struct TuneStart {
  TuneSetting as_configured;
  std::int64_t cpus = 1;
  bool gpu = false;
  bool keep_total = false;  // other batches get another `accumulate`, so that the total batch stays
};

class TuneSearch {
 public:
  explicit TuneSearch(const TuneStart& start) : start_(start) {}

  // Nothing: that was all, or what is left of the time is less than a trial takes. `trial_seconds` is a guess
  // for the first one; later the trials themselves tell.
  [[nodiscard]] std::optional<TuneSetting> next(double seconds_left, double trial_seconds) const;
  void add(TrialRow row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] const std::vector<TrialRow>& rows() const { return rows_; }

 private:
  [[nodiscard]] std::optional<TuneSetting> candidate() const;
  [[nodiscard]] std::optional<TuneSetting> with_batch(TuneSetting setting, std::int64_t batch) const;
  [[nodiscard]] std::optional<TuneSetting> larger_batch(const TrialRow& best) const;
  [[nodiscard]] std::optional<TuneSetting> other_threads(const TrialRow& best) const;
  [[nodiscard]] std::optional<TuneSetting> more_reads(const TrialRow& best) const;
  [[nodiscard]] std::optional<TuneSetting> more_prefetch(const TrialRow& best) const;
  [[nodiscard]] std::optional<TuneSetting> less_memory() const;

  TuneStart start_;
  std::vector<TrialRow> rows_;
};

// Of the rows that have figures: the fastest, the one with the least memory that is nearly as fast, and the
// one with the least memory that is not much slower. Their numbers; nothing if no trial came to figures.
struct TuneOptions {
  std::size_t conservative = 0, balanced = 0, aggressive = 0;
};
[[nodiscard]] std::optional<TuneOptions> choose_options(const std::vector<TrialRow>& rows);

inline constexpr std::array tune_option_names{"conservative", "balanced", "aggressive"};
[[nodiscard]] std::size_t option_row(const TuneOptions& options, const std::string& name);

}  // namespace sluice
