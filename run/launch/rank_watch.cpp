#include "run/launch/rank_watch.hpp"

#include <unistd.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/guarded.hpp"
#include "run/session/ending.hpp"

namespace sluice {

using namespace std::chrono_literals;

namespace {

constexpr auto to_end = 30s;  // time to save and to come to an end

}  // namespace

struct RankWatch::State {
  explicit State(Tell t) : tell(std::move(t)) {}

  void leave_it_to_main() {
    const Lock lock(mutex);
    stop = nullptr;
    ending = true;
    changed.notify_all();
  }

  // On the heartbeat's thread; true if a run was there to be ended. Before the run, main may be anywhere, in
  // a long scan of the data for one: it gets a moment to find out by itself.
  bool lost(const Error& error) {
    const Lock lock(mutex);
    const bool heard = changed.wait_for(mutex, 2s, [&]() REQUIRES(mutex) { return ending || stop; });
    if (stop) {
      stop->fail(error);
      return true;
    }
    if (heard) return false;
    tell(error);
    _exit(exit_failed);
  }

  void end_soon() {
    const Lock lock(mutex);
    if (timed) return;
    try {
      std::thread([tell = tell] {
        std::this_thread::sleep_for(to_end);
        tell({"ranks", "", "the run could not be ended in time", "go on with --resume auto"});
        _exit(exit_failed);
      }).detach();
      timed = true;
    } catch (const std::system_error&) {  // no thread to be had: the run ends by itself, or not in time
    }
  }

  const Tell tell;
  Mutex mutex;
  Condition changed;
  Stop* stop GUARDED_BY(mutex) = nullptr;
  bool ending GUARDED_BY(mutex) = false;  // main's thread is on its way out
  bool told GUARDED_BY(mutex) = false, timed GUARDED_BY(mutex) = false;
};

RankWatch::RankWatch(std::shared_ptr<Ranks> ranks, Tell tell)
    : ranks_(std::move(ranks)), state_(std::make_shared<State>(std::move(tell))) {
  if (!ranks_) return;
  ranks_->watch([state = state_, weak = std::weak_ptr<Ranks>(ranks_)](const Error& error) {
    if (!state->lost(error)) return;
    state->end_soon();
    if (const std::shared_ptr<Ranks> there = weak.lock()) there->abort();
  });
}

RankWatch::~RankWatch() { state_->leave_it_to_main(); }

void RankWatch::watch(Stop& stop) {
  const Lock lock(state_->mutex);
  state_->stop = &stop;
  state_->changed.notify_all();
}

void RankWatch::release() { state_->leave_it_to_main(); }

void RankWatch::failed(const Error& why) {
  if (!ranks_) return;
  {
    const Lock lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
    if (std::exchange(state_->told, true)) return;
  }
  state_->end_soon();
  try {
    ranks_->fail(why);
  } catch (const std::exception&) {  // the others find out by the heartbeat
  }
  ranks_->abort();
}

std::optional<Error> RankWatch::leave(std::chrono::milliseconds at_most) {
  if (!ranks_) return std::nullopt;
  ranks_->leave(at_most);
  return ranks_->verdict(0ms);
}

}  // namespace sluice
