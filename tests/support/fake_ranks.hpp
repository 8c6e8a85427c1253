// Several ranks in one process, a thread each. They exchange numbers as Ranks does: a call hears the sums of
// what all were told in the call before.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "run/train/agreement.hpp"

namespace sluice::test {

class FakeRanks {
 public:
  explicit FakeRanks(int count) : next_(static_cast<std::size_t>(count)) {}

  [[nodiscard]] Exchange of(int rank) {
    return [this, rank](std::span<const std::int64_t> mine) { return exchange(rank, mine); };
  }
  // From now on nobody hears of a call that this rank has not made.
  void lose(int rank) {
    const std::lock_guard lock(mutex_);
    lost_ = rank;
    changed_.notify_all();
  }
  void run(const std::function<void(int rank)>& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < static_cast<int>(next_.size()); ++rank) threads.emplace_back(body, rank);
  }

 private:
  struct Round {
    std::vector<std::int64_t> sums;
    std::size_t told = 0;
  };

  Result<std::vector<std::int64_t>> exchange(int rank, std::span<const std::int64_t> mine) {
    std::unique_lock lock(mutex_);
    const std::size_t number = next_[static_cast<std::size_t>(rank)]++;
    if (rounds_.size() <= number) rounds_.resize(number + 1);
    Round& round = rounds_[number];
    round.sums.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) round.sums[i] += mine[i];
    ++round.told;
    changed_.notify_all();
    if (number == 0) return std::vector<std::int64_t>(mine.size());
    const auto complete = [&] { return rounds_[number - 1].told == next_.size(); };
    const auto hopeless = [&] { return lost_ >= 0 && next_[static_cast<std::size_t>(lost_)] < number; };
    changed_.wait(lock, [&] { return complete() || hopeless(); });
    if (complete()) return rounds_[number - 1].sums;
    return Error{"ranks", "rank " + std::to_string(lost_), "is lost", ""};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> next_;  // of each rank, the number of its next call
  std::vector<Round> rounds_;
  int lost_ = -1;
};

}  // namespace sluice::test
