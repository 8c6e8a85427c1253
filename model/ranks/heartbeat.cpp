#include "model/ranks/heartbeat.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/guarded.hpp"
#include "base/printable.hpp"

namespace sluice {

using namespace std::chrono_literals;

std::string beat_key(int rank) { return "beat/" + std::to_string(rank); }
std::string fail_key(int rank) { return "fail/" + std::to_string(rank); }
std::string seen_key(int rank) { return "seen/" + std::to_string(rank); }

std::string rank_name(int rank, const std::vector<std::string>& hosts) {
  return "rank " + std::to_string(rank) + " (" + hosts.at(static_cast<std::size_t>(rank)) + ")";
}

std::chrono::milliseconds beat_interval(std::chrono::milliseconds limit) {
  return std::clamp<std::chrono::milliseconds>(limit / 6, 1ms, 2000ms);
}

std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  const std::string whole = std::to_string(tenths / 10);
  return (tenths % 10 == 0 ? whole : whole + "." + std::to_string(tenths % 10)) + " s";
}

std::string told_by_peer(std::string_view text) {
  constexpr std::size_t longest = 4000;
  return printable(text.substr(0, longest)) + (text.size() > longest ? "..." : "");
}

Heart::Heart(HeartOptions options, BeatStore store) : options_(std::move(options)), store_(std::move(store)) {
  for (int rank = 0; rank < static_cast<int>(options_.hosts.size()); ++rank)
    if (rank != options_.rank) others_.push_back({rank});
  for (const Other& other : others_) keys_.push_back(beat_key(other.rank));
  for (const Other& other : others_) keys_.push_back(fail_key(other.rank));
}

std::chrono::nanoseconds Heart::awake(std::optional<Time>& last, Time now) const {
  const Time before = std::exchange(last, now).value_or(now);
  return std::min<std::chrono::nanoseconds>(now - before, 2 * beat_interval(options_.limit));
}

std::optional<Error> Heart::beat(Time now) {
  const auto passed = awake(last_beat_, now);
  const Status told = store_.set(beat_key(options_.rank), std::to_string(++count_));
  Result<std::vector<std::string>> heard =
      told ? store_.get(keys_) : Result<std::vector<std::string>>(told.error());
  if (!heard)
    return Error{"ranks", options_.keeper, "the store that it keeps is gone: " + heard.error().cause,
                 "its own output says more"};
  ++answers_;
  return held_back(judge(*heard, passed));
}

std::optional<Error> Heart::held_back(std::optional<Error> found) {
  const bool others_left = others_.size() > 1;
  if (!options_.keeps_store || !others_left) return found;
  if (!pending_) {
    pending_ = std::move(found);
    return std::nullopt;
  }
  return ++beats_since_ < 2 ? std::nullopt : pending_;
}

std::optional<Error> Heart::judge(const std::vector<std::string>& told, std::chrono::nanoseconds passed) {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    const std::string& failure = told.at(others_.size() + i);
    if (failure == no_failure) continue;
    (void)store_.set(seen_key(options_.rank), "1");
    return Error{"ranks", rank_name(others_[i].rank, options_.hosts), "failed: " + told_by_peer(failure), ""};
  }
  std::optional<Error> lost;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    Other& other = others_[i];
    other.silence = other.beat == told[i] ? other.silence + passed : 0ns;
    other.beat = told[i];
    if (!lost && other.silence > options_.limit)
      lost = Error{"ranks", rank_name(other.rank, options_.hosts),
                   "is lost: it has not been heard of for " + seconds_text(options_.limit),
                   "it was killed or frozen, or its host is cut off; start all again with --resume auto"};
  }
  return lost;
}

std::optional<Error> Heart::guard(Time now) {
  const auto passed = awake(last_guard_, now);
  const std::uint64_t answers = answers_;
  store_silence_ = answers == std::exchange(answers_seen_, answers) ? store_silence_ + passed : 0ns;
  if (store_silence_ <= options_.limit) return std::nullopt;
  return Error{"ranks", options_.keeper,
               "the store that it keeps has not answered for " + seconds_text(options_.limit),
               "it is frozen, or the network is cut; start all again with --resume auto"};
}

struct Heartbeat::State {
  State(HeartOptions options, BeatStore store)
      : interval(beat_interval(options.limit)), heart(std::move(options), std::move(store)) {}

  void found(const std::optional<Error>& error) {
    if (!error) return;
    const Lock lock(mutex);
    if (!verdict) verdict = error;
    changed.notify_all();
  }

  void beat() {
    Lock lock(mutex);
    while (!stopping && !verdict) {
      lock.unlock();
      found(heart.beat(std::chrono::steady_clock::now()));
      lock.lock();
      changed.wait_for(mutex, interval, [&]() REQUIRES(mutex) { return stopping || verdict; });
    }
    beating = false;
    changed.notify_all();
  }

  // Also the one that calls `lost`: the other thread may hang in the store.
  void guard() {
    Lock lock(mutex);
    while (!stopping) {
      if (verdict && lost) {
        const auto call = std::exchange(lost, nullptr);
        const Error found = *verdict;
        lock.unlock();
        call(found);
        lock.lock();
      }
      changed.wait_for(mutex, interval, [&]() REQUIRES(mutex) { return stopping || (verdict && lost); });
      if (stopping || verdict) continue;
      lock.unlock();
      found(heart.guard(std::chrono::steady_clock::now()));
      lock.lock();
    }
  }

  const std::chrono::milliseconds interval;
  Heart heart;
  mutable Mutex mutex;
  mutable Condition changed;
  std::optional<Error> verdict GUARDED_BY(mutex);
  std::function<void(const Error&)> lost GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false, beating GUARDED_BY(mutex) = true;
  std::thread beats, guards;
};

Heartbeat::Heartbeat(HeartOptions options, BeatStore store)
    : state_(std::make_shared<State>(std::move(options), std::move(store))) {
  state_->beats = std::thread([state = state_] { state->beat(); });
  state_->guards = std::thread([state = state_] { state->guard(); });
}

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::watch(std::function<void(const Error&)> lost) {
  const Lock lock(state_->mutex);
  state_->lost = std::move(lost);
  state_->changed.notify_all();
}

std::optional<Error> Heartbeat::verdict(std::chrono::milliseconds at_most) const {
  const Lock lock(state_->mutex);
  state_->changed.wait_for(state_->mutex, at_most,
                           [&]() REQUIRES(state_->mutex) { return state_->stopping || state_->verdict; });
  return state_->verdict;
}

void Heartbeat::stop() {
  Lock lock(state_->mutex);
  if (std::exchange(state_->stopping, true)) return;
  state_->changed.notify_all();
  const bool ended = state_->changed.wait_for(state_->mutex, 200ms,
                                              [&]() REQUIRES(state_->mutex) { return !state_->beating; });
  lock.unlock();
  const auto end = [](std::thread& thread, bool join) { join ? thread.join() : thread.detach(); };
  end(state_->beats, ended);
  end(state_->guards, state_->guards.get_id() != std::this_thread::get_id());
}

}  // namespace sluice
