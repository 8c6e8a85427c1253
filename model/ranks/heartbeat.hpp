// Notices that a rank is gone, over a store that all ranks reach: each counts a number of its own up there
// and looks at the others'. Free of torch; Heart is free of clocks and threads as well.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace sluice {

// What a heartbeat needs of the store. Both fail when the store is gone, and block for as long as it does not
// answer.
struct BeatStore {
  std::function<Status(const std::string& key, const std::string& value)> set;
  std::function<Result<std::vector<std::string>>(const std::vector<std::string>& keys)> get;
};

struct HeartOptions {
  int rank = 0;
  std::vector<std::string> hosts;     // of each rank, for messages
  std::string keeper;                 // who keeps the store, likewise
  std::chrono::milliseconds limit{};  // a rank that is silent for so long is lost
  bool keeps_store = false;           // the store ends with this rank
};

[[nodiscard]] std::string beat_key(int rank);
[[nodiscard]] std::string fail_key(int rank);
[[nodiscard]] std::string seen_key(int rank);              // that rank knows of a failure
inline const std::string no_beat = "0", no_failure = "-";  // what the keys hold before the first beat
[[nodiscard]] std::string rank_name(int rank, const std::vector<std::string>& hosts);  // "rank 2 (host-b)"
[[nodiscard]] std::string seconds_text(std::chrono::milliseconds time);                // "1.5 s"
// What another rank says, for a message of this one: one line of bounded length without control characters.
[[nodiscard]] std::string told_by_peer(std::string_view text);
[[nodiscard]] std::chrono::milliseconds beat_interval(std::chrono::milliseconds limit);

// What one rank knows of the others. Silence counts only while this rank was awake to hear: after a pause of
// its own, or of all, it blames nobody.
class Heart {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Heart(HeartOptions options, BeatStore store);

  // Every beat_interval: tells that this rank lives, and finds who does not. Waits for the store. Who keeps
  // the store says so two beats later: the others must have found the same by themselves before it is gone.
  std::optional<Error> beat(Time now);
  // As often, on another thread: finds that the store has not answered a beat for too long.
  std::optional<Error> guard(Time now);

 private:
  struct Other {
    int rank;
    std::string beat = no_beat;
    std::chrono::nanoseconds silence{0};
  };
  // How much of the time since `last` this rank was surely awake; moves `last` on.
  std::chrono::nanoseconds awake(std::optional<Time>& last, Time now) const;
  std::optional<Error> held_back(std::optional<Error> found);
  std::optional<Error> judge(const std::vector<std::string>& told, std::chrono::nanoseconds passed);

  HeartOptions options_;
  BeatStore store_;
  std::vector<Other> others_;
  std::vector<std::string> keys_;  // beats of the others, then their failures
  std::uint64_t count_ = 0;
  std::optional<Error> pending_;  // found, and not told yet
  int beats_since_ = 0;
  std::optional<Time> last_beat_, last_guard_;
  std::atomic<std::uint64_t> answers_{0};  // of the store
  std::uint64_t answers_seen_ = 0;
  std::chrono::nanoseconds store_silence_{0};
};

// A Heart with threads and a clock.
class Heartbeat {
 public:
  Heartbeat(HeartOptions options, BeatStore store);
  ~Heartbeat();  // stops
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // `lost` is called once, on a thread of the heartbeat, when a rank is found to be gone.
  void watch(std::function<void(const Error&)> lost);
  // Who is gone, as far as is known; waits for it.
  [[nodiscard]] std::optional<Error> verdict(std::chrono::milliseconds at_most = {}) const;
  // Nothing is called afterwards. A thread that the store holds up is left to itself.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice
