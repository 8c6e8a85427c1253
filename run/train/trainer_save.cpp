// The part of the trainer that has to do with checkpoints: when one is due, what it says, and what is saved
// at the end.
#include "base/printable.hpp"
#include "base/thread_limit.hpp"
#include "run/train/trainer.hpp"

namespace sluice {

bool Trainer::clock_wants_to_save() const {
  const double minutes = facts_.config.checkpoint.every_minutes;
  return minutes > 0 && static_cast<double>(now_ns() - saved_at_) >= minutes * 60e9;
}

bool Trainer::time_to_save() const {
  const auto every = static_cast<std::uint64_t>(facts_.config.checkpoint.every_steps);
  return (every > 0 && at_.step % every == 0) || agreement_.save_due();
}

// Whether all ranks come to the end of the run as this one does. After a failure nobody can be waited for.
bool Trainer::together() const {
  return agreement_.alone() || (!failed_ && (agreement_.stop_signal() != 0 || last_batch_));
}

Position Trainer::position(const std::vector<Keeper::Best>& best) const {
  Position position = at_;
  position.epoch = epoch();
  position.records = recorder_.records();
  position.bad = agreement_.settled();
  position.best = best;
  return position;
}

// `together`: the other ranks are here as well. Metrics of the steps since the last record are read then, so
// that a resumed run goes on with the same sums.
Status Trainer::save(bool together) {
  if (together) {
    if (Status settled = agreement_.settle(); !settled) return settled;
    if (Status read = read_back(); !read) return read;
  }
  agreement_.saved();
  saved_at_ = now_ns();
  if (!facts_.seat.first()) {
    unsaved_ = false;
    return Done{};
  }
  Status saved = keeper_.save(
      [&](Snapshot& s, const std::vector<Keeper::Best>& best) {
        s.state = to_json(position(best));
        return network_->snapshot(s);
      },
      epoch(), monitored_ ? &*monitored_ : nullptr);
  if (saved) unsaved_ = false, saved_here_ = true;
  return saved;
}

std::string Trainer::last_file() const { return (facts_.folder / "checkpoints" / "last.ckpt").string(); }

Status Trainer::over() {
  Status saved = Done{};
  try {
    saved = finish();
  } catch (const std::exception& error) {
    saved = Error{"checkpoint", last_file(), as_error("", error).cause, ""};
  }
  network_.reset();
  return saved;
}

// A write that failed earlier is tried again: the disk may have room by now. Without the others, the figures
// since the last record are lost. On a GPU the last steps may still be queued when a rank is lost, and would
// be finished with gradients of fewer ranks: there the last checkpoint is the one before.
Status Trainer::finish() {
  Status saved = keeper_.wait();
  const bool surely_finished = facts_.device == "cpu" || together();
  if (network_ && sound_ && surely_finished && (unsaved_ || (!saved && at_.step > 0))) {
    saved = save(together() && (unsaved_ || agreement_.alone()));
    if (!saved && !agreement_.alone() && sound_ && unsaved_) saved = save(false);  // one was lost just now
    if (Status written = keeper_.wait(); saved) saved = std::move(written);
  }
  if (saved && saved_here_) saved = keeper_.still_there();
  if (saved && saved_here_) saved = log_.sync(std::chrono::seconds(20));
  if (saved && saved_here_) recorder_.tell("saved " + printable(last_file()));
  return saved;
}

}  // namespace sluice
