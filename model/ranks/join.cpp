// How the ranks of a run find each other, within one limit for all of it.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/guarded.hpp"
#include "model/ranks/groups.hpp"
#include "model/ranks/impl.hpp"
#include "model/ranks/listener.hpp"
#include "model/ranks/store.hpp"

#include <c10/util/Logging.h>

namespace sluice {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// What ends by itself at the deadline says more than what is cut off: it gets that much longer.
constexpr auto spare = 1s;

enum class Phase { reaching, gathering, connecting };

// The rendezvous under way on a thread of its own: torch hangs where a peer says nothing, sleeps long between
// its attempts, and cannot be told to stop.
struct Joining {
  Mutex mutex;
  Condition changed;
  std::optional<Status> ended GUARDED_BY(mutex);
  std::atomic<Phase> phase = Phase::reaching;
  std::atomic<bool> given_up = false;
};

// Torch tells of each lost connection with a page of stack trace. What matters of it becomes an error of
// ours. Until the ranks are together that goes for what it calls an error as well.
void quieten(int level) {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) std::atomic_ref(FLAGS_caffe2_log_level).store(level);
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string store_address(const Seat& seat) { return seat.address + ":" + std::to_string(seat.port); }

// Never 0, which would be for ever.
std::chrono::milliseconds left_until(Clock::time_point deadline) {
  return std::max<std::chrono::milliseconds>(
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()), 1s);
}

Result<Listener> make_listener(const Seat& seat) {
  if (seat.listener >= 0) return inherited_listener(seat.listener, seat.port);
  return listen_on(seat.listen.empty() ? seat.address : seat.listen, seat.port,
                   seat.all_on_this_host() ? Audience::this_host : Audience::other_hosts);
}

// Two connections, so that heartbeats need not wait for others' requests.
Status reach_store(Ranks::Impl& it, c10::intrusive_ptr<c10d::Store>& for_beats, Clock::time_point deadline) {
  const Seat& seat = it.options.seat;
  std::optional<Listener> listener;
  if (it.keeps_store()) {
    Result<Listener> made = make_listener(seat);
    if (!made) return made.error();
    listener.emplace(std::move(*made));
  }
  const std::string address = listener ? listener->address() : seat.address;
  return attempt(seat.secret, store_address(seat), "check MASTER_ADDR and MASTER_PORT", [&]() -> Status {
    it.store = connect_store(seat, address, left_until(deadline), listener ? &*listener : nullptr);
    it.store_sockets = connected_sockets(seat.port);
    for_beats = connect_store(seat, address, left_until(deadline), nullptr);
    for (const auto& store : {it.store, for_beats}) store->setTimeout(it.options.timeout);
    return Done{};
  });
}

// Everybody leaves name, address and a first heartbeat in the store, and waits for the others'.
Status gather(Ranks::Impl& it, Clock::time_point deadline) {
  const Seat& seat = it.options.seat;
  const std::string own = std::to_string(seat.rank);
  if (it.store->add("joined/" + own, 1) > 1)
    return Error{"ranks", "rank " + own, "is there already",
                 "an earlier run has not ended yet, or two processes have this number"};
  it.store->set(beat_key(seat.rank), bytes(no_beat));
  it.store->set(fail_key(seat.rank), bytes(no_failure));
  it.store->set("address/" + own, bytes(local_address(seat.address, seat.port)));
  it.store->set("host/" + own, bytes(host_name()));  // the last one: others wait for it
  const auto keys = it.of_all("host/");
  if (!all_there(*it.store, keys, deadline, [] { return false; }))
    return Error{"ranks", "rank " + missing(*it.store, keys),
                 "did not come within " + seconds_text(it.options.timeout),
                 "start all " + std::to_string(seat.world) +
                     " ranks, with the same SLUICE_SECRET if there is one, or raise dist.timeout"};
  for (const auto& host : it.store->multiGet(keys)) it.hosts.push_back(told_by_peer(text(host)));
  return Done{};
}

BeatStore beat_store(const c10::intrusive_ptr<c10d::Store>& store, const std::string& secret) {
  return {[store, secret](const std::string& key, const std::string& value) -> Status {
            return attempt(secret, key, "", [&]() -> Status {
              store->set(key, bytes(value));
              return Done{};
            });
          },
          [store, secret](const std::vector<std::string>& keys) -> Result<std::vector<std::string>> {
            return attempt(secret, "heartbeat", "", [&]() -> Result<std::vector<std::string>> {
              std::vector<std::string> values;
              for (const auto& value : store->multiGet(keys)) values.push_back(text(value));
              return values;
            });
          }};
}

Status connect_ranks(Ranks::Impl& it, const c10::intrusive_ptr<c10d::Store>& for_beats) {
  const Seat& seat = it.options.seat;
  const std::string keeper =
      seat.store_elsewhere ? "torchrun at " + store_address(seat) : rank_name(0, it.hosts);
  it.heartbeat = std::make_unique<Heartbeat>(
      HeartOptions{seat.rank, it.hosts, keeper, it.options.heartbeat, it.keeps_store()},
      beat_store(for_beats, seat.secret));
  // Who waits for the others in the store would do so for long.
  it.heartbeat->watch([sockets = it.store_sockets](const Error&) { shut_down(sockets); });
  const Status connected = attempt(seat.secret, "rank " + std::to_string(seat.rank),
                                   "the ranks must reach each other; GLOO_SOCKET_IFNAME names the interface",
                                   [&] { return make_groups(it); });
  it.heartbeat->watch(nullptr);
  if (!connected) return it.heartbeat->verdict().value_or(connected.error());
  return Done{};
}

Status join_all(Ranks::Impl& it, Joining& joining, Clock::time_point deadline) {
  c10::intrusive_ptr<c10d::Store> for_beats;
  if (Status reached = reach_store(it, for_beats, deadline); !reached) return reached;
  if (joining.given_up) return Error{"ranks", "", "given up", ""};  // nobody hears it
  joining.phase = Phase::gathering;
  const Status gathered = attempt(it.options.seat.secret, store_address(it.options.seat), "",
                                  [&] { return gather(it, deadline); });
  if (!gathered) return gathered;
  joining.phase = Phase::connecting;
  return connect_ranks(it, for_beats);
}

Error timed_out(const RanksOptions& options, Phase phase, bool answered) {
  const std::string within = " within " + seconds_text(options.timeout);
  if (phase == Phase::connecting)
    return {"ranks", "rank " + std::to_string(options.seat.rank), "did not reach the other ranks" + within,
            "GLOO_SOCKET_IFNAME names the interface between them; or raise dist.timeout"};
  if (answered)
    return {"ranks", store_address(options.seat), "took the connection, but did not answer" + within,
            "check MASTER_ADDR and MASTER_PORT: what listens there may be no store of a run"};
  return {"ranks", store_address(options.seat), "could not be reached" + within,
          "start rank 0 there, or check MASTER_ADDR and MASTER_PORT"};
}

}  // namespace

Result<std::shared_ptr<Ranks>> Ranks::join(const RanksOptions& options) {
  quieten(c10::GLOG_FATAL);
  const auto deadline = Clock::now() + options.timeout;
  const auto impl = std::make_shared<Impl>();
  impl->options = options;
  const auto joining = std::make_shared<Joining>();
  const std::vector<Socket> before = connected_sockets();
  std::thread thread([impl, joining, deadline] {
    Status status = attempt(impl->options.seat.secret, "rank " + std::to_string(impl->options.seat.rank), "",
                            [&] { return join_all(*impl, *joining, deadline); });
    const Lock lock(joining->mutex);
    joining->ended = std::move(status);
    joining->changed.notify_all();
  });

  bool cut = false, answered = false;
  Lock lock(joining->mutex);
  const auto ended = [&]() REQUIRES(joining->mutex) { return joining->ended.has_value(); };
  if (!joining->changed.wait_until(joining->mutex, deadline + spare, ended)) {
    // A connection that ends wakes who waits on it. Who tries again is cut off again.
    cut = true;
    joining->given_up = true;
    while (!ended() && Clock::now() < deadline + 2 * spare) {
      answered = answered || !connected_sockets(options.seat.port).empty();
      shut_down(without(connected_sockets(), before));
      joining->changed.wait_for(joining->mutex, 50ms, ended);
    }
  }
  const bool over = ended(), late = Clock::now() >= deadline;
  const Phase phase = joining->phase;
  const Status status = over ? *joining->ended : Status(Done{});
  lock.unlock();
  over ? thread.join() : thread.detach();
  if (over && status && !cut) {
    quieten(c10::GLOG_ERROR);
    return std::shared_ptr<Ranks>(new Ranks(impl));
  }
  if (cut || (late && phase == Phase::reaching)) {
    // Once connections were cut, the heartbeat would blame others for that.
    const std::optional<Error> lost =
        over && !cut && impl->heartbeat ? impl->heartbeat->verdict() : std::nullopt;
    return lost.value_or(timed_out(options, phase, answered));
  }
  return status.error();
}

}  // namespace sluice
