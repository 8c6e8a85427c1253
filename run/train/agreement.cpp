#include "run/train/agreement.hpp"

#include <array>
#include <csignal>
#include <utility>

namespace sluice {
namespace {

// What ranks tell each other, as numbers that can be summed.
enum Told : std::size_t { interrupted, terminated, wants_to_save, bad_places, hung_up, told_numbers };

}  // namespace

// With a batch that is about to begin, or without one to hear of the last one.
Status Agreement::exchange(const BatchPlan* next, std::uint64_t bad, bool settles) {
  const int signal = o_.signal();
  std::array<std::int64_t, told_numbers> mine{};
  mine[interrupted] = signal == SIGINT;
  mine[terminated] = signal == SIGTERM;
  mine[hung_up] = signal == SIGHUP;
  mine[wants_to_save] = next && o_.save_wished();
  mine[bad_places] = static_cast<std::int64_t>(bad);
  const Result<std::vector<std::int64_t>> all = o_.exchange(mine);
  if (!all) return all.error();
  const auto told = [&](Told what) { return (*all)[what] > 0; };
  if (stop_signal_ == 0)
    stop_signal_ = told(terminated) ? SIGTERM : told(hung_up) ? SIGHUP : told(interrupted) ? SIGINT : 0;
  save_due_ = save_due_ || told(wants_to_save);
  Status counted = Done{};
  if (told_) {
    counted = bad_.count(*told_, images_of(told_->split), static_cast<std::uint64_t>((*all)[bad_places]));
    if (told_->ends_step || settles) settled_ = bad_.counts();
  }
  told_ = next ? std::optional(*next) : std::nullopt;
  return counted;
}

Status Agreement::meet(const BatchPlan& plan, const std::vector<Bad>& bad) {
  const bool all_have_it = plan.split == Split::train || plan.in_phase < o_.sequence.common_val_batches();
  if (!alone() && all_have_it)
    if (Status heard = exchange(&plan, BadImages::places(bad), false); !heard) return heard;
  if (!all_have_it) untold_ += BadImages::places(bad);
  return Done{};
}

Status Agreement::list(const BatchPlan& plan, const std::vector<Bad>& bad) {
  return alone() ? bad_.note(plan, images_of(plan.split), bad) : bad_.list(plan, bad);
}

Status Agreement::settle() {
  if (!told_) return Done{};
  BatchPlan last = *told_;
  ++last.in_phase;
  if (Status heard = exchange(&last, std::exchange(untold_, 0), true); !heard) return heard;
  return exchange(nullptr, 0, true);
}

std::uint64_t Agreement::images_of(Split split) const {
  const RunShape& shape = o_.sequence.shape();
  return split == Split::train ? shape.train_images : shape.val_images;
}

}  // namespace sluice
