// An image folder in completion style: one thread keeps a queue of requests and answers them out of order.
#pragma once

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "nodes/source/folder.hpp"

namespace sluice::test {

class QueuedFolder final : public CompletingSource {
 public:
  // `first`: answers none before so many wait.
  explicit QueuedFolder(ImageFolder folder, std::size_t first = 0)
      : folder_(std::move(folder)), first_(first), thread_([this] { work(); }) {}
  ~QueuedFolder() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::size_t size() const override { return folder_.size(); }
  int label(std::size_t index) const override { return folder_.label(index); }
  std::string name(std::size_t index) const override { return folder_.name(index); }
  std::optional<std::size_t> bytes(std::size_t index) const override { return folder_.bytes(index); }
  const std::vector<std::string>& class_names() const override { return folder_.class_names(); }
  std::size_t index_bytes() const override { return folder_.index_bytes(); }

  void begin(std::size_t index, const ReadOptions& options, std::unique_ptr<Delivery> delivery,
             const Stop& stop) const override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({index, options, std::move(delivery), &stop});
      most_ = std::max(most_, queue_.size());
    }
    changed_.notify_all();
  }

  void drop_stopped() const override {
    {
      const std::lock_guard lock(mutex_);
      first_ = 0;
    }
    changed_.notify_all();
  }

  [[nodiscard]] std::size_t most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  struct Waiting {
    std::size_t index;
    ReadOptions options;
    std::unique_ptr<Delivery> delivery;
    const Stop* stop;
  };

  void work() {
    std::mt19937 engine(5);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return over_ || (!queue_.empty() && queue_.size() >= first_); });
      if (over_) return;
      first_ = 0;
      std::swap(queue_[engine() % queue_.size()], queue_.back());
      const Waiting one = std::move(queue_.back());
      queue_.pop_back();
      lock.unlock();
      const auto make_room = [&](std::size_t bytes, std::vector<iovec>& where) {
        return one.delivery->make_room(bytes, where);
      };
      one.delivery->done(one.stop->requested() ? Outcome::big()
                                               : folder_.fetch(one.index, one.options, make_room, *one.stop));
      lock.lock();
    }
  }

  ImageFolder folder_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<Waiting> queue_;
  mutable std::size_t first_, most_ = 0;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sluice::test
