// The part of the trainer that has to do with other ranks: they stop, save and give up at the same batch.
#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/printable.hpp"
#include "run/launch/signals.hpp"
#include "run/train/trainer.hpp"

namespace sluice {

// One exchange with the other ranks: all hear at the same batch what was wished for and found at the one
// before. With a batch that is about to begin, or without one to hear of the last one right now.
Status Trainer::agree(const BatchPlan* plan, std::uint64_t bad) {
  const int wish = caught_signal();
  const double minutes = o_.config.checkpoint.every_minutes;
  const bool save =
      plan && o_.place.first() && minutes > 0 && static_cast<double>(now_ns() - saved_at_) >= minutes * 60e9;
  const std::array<std::int64_t, 5> mine = {wish == SIGINT, wish == SIGTERM, save,
                                            static_cast<std::int64_t>(bad), wish == SIGHUP};
  const Result<std::vector<std::int64_t>> all = o_.ranks->exchange(mine);
  if (!all) return all.error();
  if (stop_signal_ == 0)
    stop_signal_ = (*all)[1] > 0 ? SIGTERM : (*all)[4] > 0 ? SIGHUP : (*all)[0] > 0 ? SIGINT : 0;
  save_due_ = save_due_ || (*all)[2] > 0;
  Status counted = Done{};
  if (told_) {
    counted = bad_.count(*told_, images_of(told_->split), static_cast<std::uint64_t>((*all)[3]));
    if (told_->ends_step || (told_->split == Split::val && validated_)) settled_bad_ = bad_.state();
  }
  told_ = plan ? std::optional(*plan) : std::nullopt;
  return counted;
}

std::uint64_t Trainer::images_of(Split split) const {
  const RunShape& shape = o_.sequence.shape();
  return split == Split::train ? shape.train_images : shape.val_images;
}

// Lists and counts the batch's bad images, and with other ranks finds out whether to go on.
Status Trainer::note(const BatchPlan& plan, const std::vector<Bad>& bad) {
  const bool all_have_it = plan.split == Split::train || plan.in_phase < o_.sequence.common_val_batches();
  if (o_.ranks && all_have_it)
    if (Status agreed = agree(&plan, BadImages::places(bad)); !agreed) return agreed;
  if (!all_have_it) untold_ += BadImages::places(bad);
  if (stop_signal_ != 0) return Done{};
  for (const Bad& b : bad)
    log_.message(Level::warning, printable(b.file) + ": " + printable(b.cause) +
                                     (b.replacement.empty() ? "; left out" : "; replaced"));
  return o_.ranks ? bad_.list(plan, bad) : bad_.note(plan, images_of(plan.split), bad);
}

// Whether all ranks come to the end of the run as this one does. After a failure nobody can be waited for.
bool Trainer::together() const { return !o_.ranks || stop_signal_ != 0 || last_batch_; }

// Metrics of the steps since the last record are read now, so that a resumed run goes on with the same sums.
// With ranks, the bad images of the last batch, and of those that only some ranks had, are told and heard of.
Status Trainer::settle() {
  if (told_) {
    BatchPlan last = *told_;
    ++last.in_phase;
    if (Status agreed = agree(&last, std::exchange(untold_, 0)); !agreed) return agreed;
    if (Status agreed = agree(nullptr, 0); !agreed) return agreed;
  }
  const auto lr = std::ranges::find(shown_, "train/lr", &Values::value_type::first);
  return read_back(lr == shown_.end() ? 0 : lr->second);
}

}  // namespace sluice
