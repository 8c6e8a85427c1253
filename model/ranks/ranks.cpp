#include "model/ranks/ranks.hpp"

#include <thread>

#include "base/guarded.hpp"
#include "model/ranks/groups.hpp"
#include "model/ranks/impl.hpp"
#include "model/ranks/store.hpp"

namespace sluice {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Whoever tells a process to end kills it half a minute later: torchrun does, and so does our own launcher.
constexpr std::chrono::milliseconds in_a_hurry = 10s;

// Runs `body` on a thread of its own, for it may hang in the store. False where it says so, has not ended in
// time, or need not be waited for any longer.
bool succeeds_within(std::chrono::milliseconds at_most, std::function<bool()> body,
                     const std::function<bool()>& hopeless) {
  struct State {
    Mutex mutex;
    Condition changed;
    bool ended GUARDED_BY(mutex) = false, answer GUARDED_BY(mutex) = false;
  };
  const auto state = std::make_shared<State>();
  std::thread thread([state, body = std::move(body)] {
    bool answer = false;
    try {
      answer = body();
    } catch (const std::exception&) {
      // The store is gone: there is nobody to tell.
    }
    const Lock lock(state->mutex);
    state->ended = true;
    state->answer = answer;
    state->changed.notify_all();
  });
  const auto deadline = Clock::now() + at_most;
  Lock lock(state->mutex);
  while (!state->ended && Clock::now() < deadline && !hopeless()) state->changed.wait_for(state->mutex, 50ms);
  const bool ended = state->ended, answer = state->answer;
  lock.unlock();
  ended ? thread.join() : thread.detach();
  return answer;
}

}  // namespace

bool Ranks::Impl::await(const std::vector<std::string>& keys, Clock::time_point deadline) {
  return all_there(*store, keys, deadline, [&] { return heartbeat && heartbeat->verdict().has_value(); });
}

std::vector<std::string> Ranks::Impl::of_all(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.seat.world; ++rank) keys.push_back(prefix + std::to_string(rank));
  return keys;
}

Ranks::Ranks(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

// The groups wait for what is under way on them, which without the others would be for ever.
Ranks::~Ranks() {
  if (!impl_->left) abort();
  impl_->heartbeat->stop();
}

const Seat& Ranks::seat() const { return impl_->options.seat; }

Result<std::string> Ranks::from_first(const std::string& name, const std::string& value) {
  Impl& it = *impl_;
  Result<std::string> heard = attempt(seat().secret, name, "", [&]() -> Result<std::string> {
    const std::string key = "first/" + name;
    if (seat().first()) {
      it.store->set(key, bytes(value));
      return value;
    }
    if (it.await({key}, Clock::now() + it.options.timeout)) return text(it.store->get(key));
    return Error{"ranks", rank_name(0, it.hosts), "did not tell \"" + name + "\" in time",
                 "raise dist.timeout"};
  });
  if (heard) return heard;
  return verdict(patience()).value_or(heard.error());
}

Status Ranks::meet(const std::string& name) {
  Impl& it = *impl_;
  Status met = attempt(seat().secret, name, "", [&]() -> Status {
    const std::string prefix = "meet/" + name + "/" + std::to_string(it.meetings[name]++) + "/";
    it.store->set(prefix + std::to_string(seat().rank), bytes("1"));
    const auto keys = it.of_all(prefix);
    if (it.await(keys, Clock::now() + it.options.timeout)) return Done{};
    return Error{"ranks", "rank " + missing(*it.store, keys), "did not come to \"" + name + "\" in time",
                 "raise dist.timeout"};
  });
  if (met) return met;
  return verdict(patience()).value_or(met.error());
}

Result<std::vector<std::int64_t>> Ranks::exchange(std::span<const std::int64_t> mine) {
  Impl& it = *impl_;
  using Sums = Result<std::vector<std::int64_t>>;
  Sums sums = attempt(seat().secret, "exchange", "", [&]() -> Sums {
    std::vector<std::int64_t> before(mine.size(), 0);
    if (it.exchange) {
      it.exchange->wait();
      const std::int64_t* values = it.travelling.const_data_ptr<std::int64_t>();
      before.assign(values, values + it.travelling.numel());
    }
    it.travelling = at::empty({static_cast<std::int64_t>(mine.size())}, at::kLong);
    std::ranges::copy(mine, it.travelling.data_ptr<std::int64_t>());
    std::vector<at::Tensor> tensors{it.travelling};
    it.exchange = it.small->allreduce(tensors);
    return before;
  });
  if (sums) return sums;
  return verdict(patience()).value_or(sums.error());
}

void Ranks::watch(std::function<void(const Error&)> lost) { impl_->heartbeat->watch(std::move(lost)); }

std::optional<Error> Ranks::verdict(std::chrono::milliseconds at_most) const {
  const auto began = Clock::now();
  for (;;) {
    const bool hurried = impl_->options.hurried && impl_->options.hurried();
    const auto longest = impl_->aborted ? 0ms : hurried ? std::min(at_most, in_a_hurry) : at_most;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(began + longest - Clock::now());
    const auto found = impl_->heartbeat->verdict(std::clamp(left, 0ms, 100ms));
    if (found || left <= 100ms) return found;
  }
}

std::chrono::milliseconds Ranks::patience() const {
  return impl_->options.heartbeat + 4 * beat_interval(impl_->options.heartbeat);
}

// A rank that ends because of another has nothing to tell. The store's keeper waits until the others know:
// its end is the store's.
void Ranks::fail(const Error& why) {
  Impl& it = *impl_;
  if (verdict(0ms)) return;
  const auto a_beat = 2 * beat_interval(it.options.heartbeat) + 500ms;
  const auto tell = [store = it.store, key = fail_key(seat().rank), why = why.text(),
                     waits = it.keeps_store(), seen = it.of_all("seen/"), a_beat] {
    store->set(key, bytes(why));
    const std::vector<std::string> others(seen.begin() + 1, seen.end());
    return !waits || others.empty() || all_there(*store, others, Clock::now() + a_beat, [] { return false; });
  };
  succeeds_within(a_beat + 500ms, tell, [] { return false; });
}

// In two rounds: all are silent before the first one goes, and the keeper of the store goes last.
void Ranks::leave(std::chrono::milliseconds at_most) {
  Impl& it = *impl_;
  const auto deadline = Clock::now() + at_most;
  const auto round = [&](const std::string& prefix, bool wait) {
    const auto body = [store = it.store, keys = it.of_all(prefix), wait, deadline,
                       own = prefix + std::to_string(seat().rank)] {
      store->set(own, bytes("1"));
      return !wait || all_there(*store, keys, deadline, [] { return false; });
    };
    return succeeds_within(at_most, body, [&] { return verdict(0ms).has_value(); });
  };
  if (verdict(0ms) || !round("left/", true)) return;
  it.heartbeat->stop();
  it.left = true;
  round("gone/", it.keeps_store());
}

void Ranks::abort() {
  impl_->aborted = true;
  shut_down(impl_->sockets);
  shut_down(impl_->store_sockets);
  abort_groups(*impl_);
}

}  // namespace sluice
