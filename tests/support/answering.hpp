// A source in completion style for fake runs: one thread keeps the requests that were begun and answers them
// in random order with what the blocking read gives.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "graph/flow/stages.hpp"

namespace sluice::test {

class Answering {
 public:
  struct Held {
    Ticket ticket;
    Request request;
    const Stop* stop;
  };

  // `first`: answers none before so many were begun.
  explicit Answering(std::size_t first = 0) : first_(first), thread_([this] { work(); }) {}
  ~Answering() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void wire(Stages& stages) {
    read = std::move(stages.read);
    stages.read = nullptr;
    stages.begin_read = [this](const Ticket& t, Request&& request, const Stop& stop) {
      begin(t, std::move(request), stop);
    };
  }

  void begin(const Ticket& t, Request&& request, const Stop& stop) {
    auto held = std::make_unique<Held>(Held{t, std::move(request), &stop});
    if (at_once && at_once(t)) return answer(*held);
    {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(held));
      most_ = std::max(most_, held_.size());
    }
    changed_.notify_all();
  }

  void answer(Held& held) {
    held.request.done(read(
        held.ticket, [&](std::size_t bytes) { return held.request.take(bytes); }, *held.stop));
  }

  void answer_all() {
    std::unique_lock lock(mutex_);
    const std::vector<std::unique_ptr<Held>> all = std::exchange(held_, {});
    lock.unlock();
    for (const std::unique_ptr<Held>& one : all) answer(*one);
  }

  [[nodiscard]] std::size_t most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

  std::function<Outcome(const Ticket&, const TakeChunks&, const Stop&)> read;
  std::function<bool(const Ticket&)> at_once;  // those that begin() answers itself

 private:
  void work() {
    std::mt19937 engine(7);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return over_ || (!held_.empty() && held_.size() >= first_); });
      if (over_) return;
      first_ = 0;
      std::swap(held_[engine() % held_.size()], held_.back());
      const std::unique_ptr<Held> one = std::move(held_.back());
      held_.pop_back();
      lock.unlock();
      answer(*one);
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Held>> held_;
  std::size_t first_, most_ = 0;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sluice::test
