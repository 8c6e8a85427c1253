// The byte ledger: who may hold how many bytes of the data path's budget, who holds them now, and the most
// that was ever held. Accounts are opened before the run and their bounds add up to no more than the budget,
// so the budget cannot be overrun; a charge past an account's bound is a programming error and throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace sluice {

class Ledger;

class Account {
 public:
  Account(Ledger& ledger, std::string name, std::size_t bound)
      : ledger_(ledger), name_(std::move(name)), bound_(bound) {}
  void charge(std::size_t bytes);
  void release(std::size_t bytes);
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bound() const { return bound_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Ledger& ledger_;
  std::string name_;
  std::size_t bound_;
  std::atomic<std::size_t> held_{0}, peak_{0};
};

class Ledger {
 public:
  explicit Ledger(std::size_t budget) : budget_(budget) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Throws std::logic_error if the bounds of all accounts would exceed the budget. Not for use during a run.
  Account& open(std::string name, std::size_t bound);

  [[nodiscard]] std::size_t budget() const { return budget_; }
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::deque<Account>& accounts() const { return accounts_; }

 private:
  friend class Account;
  std::size_t budget_, promised_ = 0;
  std::deque<Account> accounts_;
  std::atomic<std::size_t> held_{0}, peak_{0};
};

}  // namespace sluice
