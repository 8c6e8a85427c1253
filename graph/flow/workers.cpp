#include "graph/flow/workers.hpp"

#include <algorithm>

#include "base/background.hpp"
#include "base/guarded.hpp"

namespace sluice {

struct Workers::State {
  State(Work w, CompletionTable::Hooks hooks) : work(std::move(w)), table(std::move(hooks)) {}

  void run() {
    Lock lock(mutex);
    for (;;) {
      changed.wait(mutex,
                   [this]() REQUIRES(mutex) { return closed || (!waiting.empty() && active < limit); });
      if (closed) break;
      ++active;
      std::pop_heap(waiting.begin(), waiting.end(), younger);
      Sample* sample = waiting.back();
      waiting.pop_back();
      lock.unlock();
      work(sample);
      {
        const Lock again(mutex);
        --active;  // this thread comes back for what waits: nobody needs to be woken
      }
      if (table.claim(sample)) table.hand_on(sample);
      lock.lock();
    }
    --running;
    ended.notify_all();
  }

  static bool younger(const Sample* a, const Sample* b) { return older(b->ticket, a->ticket); }

  Work work;
  CompletionTable table;
  Mutex mutex;
  Condition changed, ended;
  std::vector<Sample*> waiting GUARDED_BY(mutex);  // a heap, the oldest on top
  unsigned running GUARDED_BY(mutex) = 0, active GUARDED_BY(mutex) = 0, limit GUARDED_BY(mutex) = 0;
  bool closed GUARDED_BY(mutex) = false;
};

Workers::Workers(unsigned threads, Work work, CompletionTable::Hooks hooks)
    : state_(std::make_shared<State>(std::move(work), std::move(hooks))), count_(threads) {}

Workers::~Workers() {
  cancel();
  (void)join(std::chrono::milliseconds(0));
}

unsigned Workers::start() {
  add_thread();
  return resize(count_);
}

void Workers::add_thread() {
  {
    const Lock lock(state_->mutex);
    ++state_->running;
  }
  try {
    threads_.emplace_back([state = state_] {
      work_in_background();
      state->run();
    });
  } catch (...) {
    const Lock lock(state_->mutex);
    --state_->running;
    throw;
  }
}

unsigned Workers::resize(unsigned threads) {
  try {
    while (threads_.size() < threads) add_thread();
  } catch (const std::exception&) {
    threads = static_cast<unsigned>(threads_.size());
  }
  {
    const Lock lock(state_->mutex);
    state_->limit = threads;
  }
  state_->changed.notify_all();
  return threads;
}

void Workers::submit(Sample* sample) {
  if (!state_->table.enter(sample)) return;
  {
    const Lock lock(state_->mutex);
    state_->waiting.push_back(sample);
    std::push_heap(state_->waiting.begin(), state_->waiting.end(), State::younger);
  }
  state_->changed.notify_one();
}

void Workers::cancel() {
  {
    const Lock lock(state_->mutex);
    state_->closed = true;
    state_->waiting.clear();
  }
  state_->changed.notify_all();
  state_->table.settle();
}

bool Workers::join(std::chrono::milliseconds patience) {
  Lock lock(state_->mutex);
  const bool all = state_->ended.wait_for(state_->mutex, patience,
                                          [this]() REQUIRES(state_->mutex) { return state_->running == 0; });
  lock.unlock();
  for (std::thread& t : threads_) all ? t.join() : t.detach();
  threads_.clear();
  return all;
}

std::size_t Workers::outstanding() const { return state_->table.size(); }

}  // namespace sluice
