#include "model/ranks.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "model/ranks_groups.hpp"
#include "model/ranks_impl.hpp"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace sluice {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Whoever tells a process to end kills it half a minute later: torchrun does, and so does our own launcher.
constexpr std::chrono::milliseconds in_a_hurry = 10s;

// Torch's exceptions as our errors; their text has a stack trace after the first line.
template <class Body>
auto attempt(const std::string& subject, const std::string& hint, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return Error{"ranks", subject, error.what_without_backtrace(), hint};
  } catch (const std::exception& error) {
    return Error{"ranks", subject, error.what(), hint};
  }
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

c10::intrusive_ptr<c10d::Store> connect(const RanksOptions& options, bool server) {
  c10d::TCPStoreOptions how;
  how.port = options.place.port;
  how.isServer = server;
  how.waitWorkers = false;
  how.timeout = options.timeout;
  return c10::make_intrusive<c10d::PrefixStore>(
      "sluice/" + options.place.attempt, c10::make_intrusive<c10d::TCPStore>(options.place.address, how));
}

BeatStore beat_store(c10::intrusive_ptr<c10d::Store> store) {
  return {[store](const std::string& key, const std::string& value) -> Status {
            return attempt(key, "", [&]() -> Status {
              store->set(key, bytes(value));
              return Done{};
            });
          },
          [store](const std::vector<std::string>& keys) -> Result<std::vector<std::string>> {
            return attempt("heartbeat", "", [&]() -> Result<std::vector<std::string>> {
              std::vector<std::string> values;
              for (const auto& value : store->multiGet(keys)) values.push_back(text(value));
              return values;
            });
          }};
}

// Runs `body` on a thread of its own, for it may hang in the store. False where it says so, has not ended in
// time, or need not be waited for any longer.
bool succeeds_within(std::chrono::milliseconds at_most, std::function<bool()> body,
                     const std::function<bool()>& hopeless) {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false, answer = false;
  };
  const auto state = std::make_shared<State>();
  std::thread thread([state, body = std::move(body)] {
    bool answer = false;
    try {
      answer = body();
    } catch (const std::exception&) {
      // The store is gone: there is nobody to tell.
    }
    const std::lock_guard lock(state->mutex);
    state->ended = true;
    state->answer = answer;
    state->changed.notify_all();
  });
  const auto deadline = Clock::now() + at_most;
  std::unique_lock lock(state->mutex);
  while (!state->ended && Clock::now() < deadline && !hopeless()) state->changed.wait_for(lock, 50ms);
  const bool ended = state->ended, answer = state->answer;
  lock.unlock();
  ended ? thread.join() : thread.detach();
  return answer;
}

bool all_there(c10d::Store& store, const std::vector<std::string>& keys, Clock::time_point deadline,
               const std::function<bool()>& hopeless) {
  for (auto pause = 1ms; !store.check(keys); pause = std::min<std::chrono::milliseconds>(2 * pause, 50ms)) {
    if (Clock::now() > deadline || hopeless()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

// Torch warns of each lost connection with a page of stack trace. What matters of it becomes an error of
// ours.
void quieten() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_ERROR;
}

std::string missing(Ranks::Impl& it, const std::vector<std::string>& keys) {
  std::string list;
  for (std::size_t rank = 0; rank < keys.size(); ++rank)
    if (!it.store->check({keys[rank]})) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

// Everybody leaves name, address and a first heartbeat in the store, and waits for the others'.
Status gather(Ranks::Impl& it) {
  const Place& place = it.options.place;
  const std::string own = std::to_string(place.rank);
  if (it.store->add("joined/" + own, 1) > 1)
    return Error{"ranks", "rank " + own, "is there already",
                 "an earlier run has not ended yet, or two processes have this number"};
  it.store->set(beat_key(place.rank), bytes(no_beat));
  it.store->set(fail_key(place.rank), bytes(no_failure));
  it.store->set("address/" + own, bytes(local_address(place.address, place.port)));
  it.store->set("host/" + own, bytes(host_name()));  // the last one: others wait for it
  const auto keys = it.of_all("host/");
  if (!all_there(*it.store, keys, Clock::now() + it.options.timeout, [] { return false; }))
    return Error{"ranks", "rank " + missing(it, keys),
                 "did not come within " + std::to_string(it.options.timeout.count() / 1000) + " s",
                 "start all " + std::to_string(place.world) + " ranks, or raise dist.timeout"};
  for (const auto& host : it.store->multiGet(keys)) it.hosts.push_back(text(host));
  return Done{};
}

}  // namespace

bool Ranks::Impl::await(const std::vector<std::string>& keys, Clock::time_point deadline) {
  return all_there(*store, keys, deadline, [&] { return heartbeat && heartbeat->verdict().has_value(); });
}

std::vector<std::string> Ranks::Impl::of_all(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.place.world; ++rank) keys.push_back(prefix + std::to_string(rank));
  return keys;
}

Result<std::shared_ptr<Ranks>> Ranks::join(const RanksOptions& options) {
  quieten();
  const Place& place = options.place;
  const std::string where = place.address + ":" + std::to_string(place.port);
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  c10::intrusive_ptr<c10d::Store> for_beats;
  const Status reached =
      attempt(where, "check MASTER_ADDR and MASTER_PORT, and that the port is free", [&]() -> Status {
        impl->store = connect(options, impl->keeps_store());
        impl->store_sockets = connected_sockets(place.port);
        for_beats = connect(options, false);
        return gather(*impl);
      });
  if (!reached) return reached.error();
  const std::string keeper = place.store_elsewhere ? "torchrun at " + where : rank_name(0, impl->hosts);
  impl->heartbeat = std::make_unique<Heartbeat>(
      HeartOptions{place.rank, impl->hosts, keeper, options.heartbeat, impl->keeps_store()},
      beat_store(for_beats));
  // Who waits for the others in the store would do so for long.
  impl->heartbeat->watch([sockets = impl->store_sockets](const Error&) { shut_down(sockets); });
  const Status connected = attempt("rank " + std::to_string(place.rank),
                                   "the ranks must reach each other; GLOO_SOCKET_IFNAME names the interface",
                                   [&] { return make_groups(*impl); });
  impl->heartbeat->watch(nullptr);
  if (!connected) return impl->heartbeat->verdict().value_or(connected.error());
  return std::shared_ptr<Ranks>(new Ranks(std::move(impl)));
}

Ranks::Ranks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// The groups wait for what is under way on them, which without the others would be for ever.
Ranks::~Ranks() {
  if (!impl_->left) abort();
  impl_->heartbeat->stop();
}

const Place& Ranks::place() const { return impl_->options.place; }

Result<std::string> Ranks::from_first(const std::string& name, const std::string& value) {
  Impl& it = *impl_;
  Result<std::string> heard = attempt(name, "", [&]() -> Result<std::string> {
    const std::string key = "first/" + name;
    if (place().first()) {
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
  Status met = attempt(name, "", [&]() -> Status {
    const std::string prefix = "meet/" + name + "/" + std::to_string(it.meetings[name]++) + "/";
    it.store->set(prefix + std::to_string(place().rank), bytes("1"));
    const auto keys = it.of_all(prefix);
    if (it.await(keys, Clock::now() + it.options.timeout)) return Done{};
    return Error{"ranks", "rank " + missing(it, keys), "did not come to \"" + name + "\" in time",
                 "raise dist.timeout"};
  });
  if (met) return met;
  return verdict(patience()).value_or(met.error());
}

Result<std::vector<std::int64_t>> Ranks::exchange(std::span<const std::int64_t> mine) {
  Impl& it = *impl_;
  using Sums = Result<std::vector<std::int64_t>>;
  Sums sums = attempt("exchange", "", [&]() -> Sums {
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
  const auto tell = [store = it.store, key = fail_key(place().rank), why = why.text(),
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
                       own = prefix + std::to_string(place().rank)] {
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
