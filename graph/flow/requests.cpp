#include "graph/flow/requests.hpp"

#include <algorithm>
#include <vector>

#include "base/guarded.hpp"

namespace sluice {

struct Requests::State : Request::Owner, std::enable_shared_from_this<State> {
  State(StageRunner& runner, CompletionTable::Hooks hooks) : runner(runner), table(std::move(hooks)) {}

  // Begins what may begin. One thread at a time, and never from within itself: a source that answers at once
  // would otherwise answer from within its own answer, deeper and deeper.
  void begin_waiting() {
    Lock lock(mutex);
    if (beginning) return;  // that thread looks again before it leaves
    beginning = true;
    while (!closed && !waiting.empty() && under_way < at_once) {
      std::pop_heap(waiting.begin(), waiting.end(), younger);
      Sample* sample = waiting.back();
      waiting.pop_back();
      ++under_way;
      lock.unlock();
      runner.begin_read(Request(shared_from_this(), runner.open_read(sample)));
      lock.lock();
      if (closed) {  // it may have begun after cancel() had all others dropped
        lock.unlock();
        runner.drop_reads();
        lock.lock();
      }
    }
    beginning = false;
    back.notify_all();
  }

  std::span<std::uint8_t* const> take(Reading& reading, std::size_t bytes) override {
    return runner.take_chunks(reading, bytes);
  }

  void done(Reading reading, Outcome outcome) override {
    {
      Reading ended =
          std::move(reading);  // looks at the graph's figures as it goes: must go before the count
      if (table.claim(ended.sample)) {
        runner.finish_read(ended, std::move(outcome));
        table.hand_on(ended.sample);
      }
    }
    {
      const Lock lock(mutex);
      --under_way;
      back.notify_all();
    }
    begin_waiting();  // from here on the graph may be gone; it is touched only if it was not closed
  }

  static bool younger(const Sample* a, const Sample* b) { return older(b->ticket, a->ticket); }

  StageRunner& runner;
  CompletionTable table;
  Mutex mutex;
  Condition back;
  std::vector<Sample*> waiting GUARDED_BY(mutex);  // a heap, the oldest on top
  unsigned under_way GUARDED_BY(mutex) = 0, at_once GUARDED_BY(mutex) = 0;
  bool beginning GUARDED_BY(mutex) = false, closed GUARDED_BY(mutex) = false;
};

Requests::Requests(StageRunner& runner, CompletionTable::Hooks hooks)
    : state_(std::make_shared<State>(runner, std::move(hooks))) {}

Requests::~Requests() { cancel(); }

void Requests::resize(unsigned at_once) {
  {
    const Lock lock(state_->mutex);
    state_->at_once = at_once;
  }
  state_->begin_waiting();
}

void Requests::submit(Sample* sample) {
  if (!state_->table.enter(sample)) return;
  {
    const Lock lock(state_->mutex);
    state_->waiting.push_back(sample);
    std::push_heap(state_->waiting.begin(), state_->waiting.end(), State::younger);
  }
  state_->begin_waiting();
}

void Requests::cancel() {
  {
    const Lock lock(state_->mutex);
    if (std::exchange(state_->closed, true)) return;
    state_->waiting.clear();
  }
  state_->table.settle();
  state_->runner.drop_reads();
}

bool Requests::join(std::chrono::milliseconds patience) {
  State& state = *state_;
  const Lock lock(state.mutex);
  return state.back.wait_for(state.mutex, patience, [&]() REQUIRES(state.mutex) {
    return state.under_way == 0 && !state.beginning;
  });
}

}  // namespace sluice
