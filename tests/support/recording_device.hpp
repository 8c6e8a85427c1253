// A device for tests that checks the order of what it is given. Each queue's work is really done, but late:
// when the test says so, in any order that queues and events allow. Whether a piece of work may touch memory
// is judged when it is queued, by what the events make certain, so that luck in the timing hides nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "model/device/device.hpp"

namespace sluice::test {

class RecordingDevice final : public Device {
 public:
  // What a program could forget or do wrong; each must be noticed.
  struct Faults {
    bool no_wait_before_copy = false, no_wait_before_compute = false;
    bool no_copied = false, no_consumed = false;  // the events are never recorded
    bool tells_host_at_once = false;              // before the copy is done
    int fail_copy = -1;                           // the copy of this number fails
    bool no_capture = false;
  };
  Faults faults;
  std::function<Status()> on_pin = [] { return Status(Done{}); };
  std::function<void(void*)> on_unpin = [](void*) {};

  void enter() override {}
  [[nodiscard]] bool shares_host_memory() const override { return false; }
  [[nodiscard]] Result<std::shared_ptr<void>> allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    auto block = std::make_shared<std::vector<std::uint8_t>>(bytes, std::uint8_t{0xCD});
    uses_[block->data()] = {bytes, {}, {}};
    ++allocations;
    return std::shared_ptr<void>(block, block->data());
  }
  Status pin(void*, std::size_t) override {
    Status done = on_pin();
    if (done) ++pinned;
    return done;
  }
  void unpin(void* memory) override {
    --pinned;
    on_unpin(memory);
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (copies++ == faults.fail_copy) return Error{"device", "", "the copy failed", ""};
    Use* use = find(to, bytes);
    if (!use) return wrong("a copy to memory that is not the device's");
    const Moment now = tick(Queue::copy);
    for (const Moment& read : use->reads)
      if (!before(read, Queue::copy)) return wrong("memory is overwritten that may still be read");
    use->written = now;
    use->reads.clear();
    queue(Queue::copy).push_back([to, from, bytes] { std::memcpy(to, from, bytes); });
    return Done{};
  }
  Status after_copies(std::function<void()> then) override {
    {
      const std::lock_guard lock(mutex_);
      if (!faults.tells_host_at_once) {
        queue(Queue::copy).push_back(std::move(then));
        return Done{};
      }
    }
    then();
    return Done{};
  }
  void finish_copies() override {
    ++synchronised;
    run_all();
  }

  [[nodiscard]] Result<std::unique_ptr<Event>> make_event() override {
    return std::unique_ptr<Event>(std::make_unique<Recorded>());
  }
  Status record(Event& event, Queue q) override {
    const std::lock_guard lock(mutex_);
    if (q == Queue::copy ? faults.no_copied : faults.no_consumed) return Done{};
    auto state = static_cast<Recorded&>(event).state;
    state->known = known_[index(q)];
    const int number = ++state->recorded;
    queue(q).push_back([state, number] { state->complete = number; });
    return Done{};
  }
  Status wait(Event& event, Queue q) override {
    const std::lock_guard lock(mutex_);
    if (q == Queue::copy ? faults.no_wait_before_copy : faults.no_wait_before_compute) return Done{};
    auto state = static_cast<Recorded&>(event).state;
    for (std::size_t i = 0; i < 2; ++i) known_[index(q)][i] = std::max(known_[index(q)][i], state->known[i]);
    work_[index(q)].push_back({[] {}, state, state->recorded});
    return Done{};
  }

  Status convert(const Conversion& job) override {
    const std::lock_guard lock(mutex_);
    const auto side = static_cast<std::size_t>(job.size);
    Use* use = find(job.pixels, 3 * job.count * side * side);
    if (!use) return wrong("arithmetic on memory that is not the device's");
    if (use->written && !before(*use->written, Queue::compute))
      return wrong("memory is read that may not be written yet");
    use->reads.push_back(tick(Queue::compute));
    queue(Queue::compute).push_back([job, side] {
      const std::size_t threads = job.count * side * side / pixels_of_a_thread + 1;
      for (std::size_t i = 0; i < threads; ++i) convert_part(job, static_cast<float*>(job.out), i);
    });
    return Done{};
  }
  [[nodiscard]] Result<std::unique_ptr<Captured>> capture(const std::function<Status()>& work) override {
    ++captures;
    if (faults.no_capture) return Error{"device", "", "this cannot be captured", ""};
    const Status done = work();
    if (!done) return done.error();
    return std::unique_ptr<Captured>(std::make_unique<Recording>(replays));
  }
  [[nodiscard]] Memory memory() const override { return {}; }

  // Does one piece of work of one of the queues; false where none is left. Events that wait for each other
  // for ever count as wrong.
  bool run_one() {
    Work work;
    {
      const std::lock_guard lock(mutex_);
      const std::size_t first = random_.below(2);
      std::deque<Work>* from = nullptr;
      for (const std::size_t i : {first, 1 - first})
        if (!from && !work_[i].empty() && work_[i].front().ready()) from = &work_[i];
      if (!from) {
        if (!work_[0].empty() || !work_[1].empty()) errors_.push_back("the queues wait for each other");
        return false;
      }
      work = std::move(from->front());
      from->pop_front();
    }
    work.body();
    return true;
  }
  void run_all() {
    while (run_one()) {
    }
  }

  [[nodiscard]] std::vector<std::string> errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  int copies = 0, allocations = 0, captures = 0, replays = 0;
  std::atomic<int> pinned{0}, synchronised{0};

 private:
  using Clock = std::array<std::uint64_t, 2>;  // how much of each queue's work is certain to be done
  struct Moment {
    std::size_t queue;
    std::uint64_t number;
  };
  struct State {
    Clock known{};
    int recorded = 0, complete = 0;
  };
  struct Recorded final : Event {
    std::shared_ptr<State> state = std::make_shared<State>();
  };
  struct Recording final : Captured {
    explicit Recording(int& c) : count(c) {}
    Status replay() override {
      ++count;
      return Done{};
    }
    int& count;
  };
  struct Use {
    std::size_t bytes = 0;
    std::optional<Moment> written;
    std::vector<Moment> reads;
  };
  struct Work {
    std::function<void()> body;
    std::shared_ptr<State> event = nullptr;
    int number = 0;
    [[nodiscard]] bool ready() const { return !event || event->complete >= number; }
  };
  struct Pusher {
    std::deque<Work>& to;
    void push_back(std::function<void()> body) { to.push_back({std::move(body)}); }
  };

  static std::size_t index(Queue q) { return q == Queue::copy ? 0 : 1; }
  Pusher queue(Queue q) { return {work_[index(q)]}; }
  Moment tick(Queue q) { return {index(q), ++known_[index(q)][index(q)]}; }
  [[nodiscard]] bool before(const Moment& then, Queue q) const {
    return known_[index(q)][then.queue] >= then.number;
  }
  Use* find(const void* at, std::size_t bytes) {
    const auto* start = static_cast<const std::uint8_t*>(at);
    auto after = uses_.upper_bound(start);
    if (after == uses_.begin()) return nullptr;
    auto& [base, use] = *std::prev(after);
    return start + bytes <= base + use.bytes ? &use : nullptr;
  }
  Status wrong(const std::string& what) {
    errors_.push_back(what);
    return Done{};  // goes on, as a real device would
  }

  mutable std::mutex mutex_;
  Random random_{5, 0, 0, Purpose::synth};
  std::array<Clock, 2> known_{};
  std::array<std::deque<Work>, 2> work_;
  std::map<const std::uint8_t*, Use> uses_;
  std::vector<std::string> errors_;
};

}  // namespace sluice::test
