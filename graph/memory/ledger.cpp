#include "graph/memory/ledger.hpp"

#include <stdexcept>

namespace sluice {
namespace {

void raise_to(std::atomic<std::size_t>& peak, std::size_t value) {
  std::size_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void Account::charge(std::size_t bytes) {
  const std::size_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > bound_) {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    throw std::logic_error("ledger: " + name_ + " would hold " + std::to_string(now) +
                           " bytes, its bound is " + std::to_string(bound_));
  }
  raise_to(peak_, now);
  raise_to(ledger_.peak_, ledger_.held_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void Account::release(std::size_t bytes) {
  ledger_.held_.fetch_sub(bytes, std::memory_order_relaxed);
  if (held_.fetch_sub(bytes, std::memory_order_relaxed) < bytes)
    throw std::logic_error("ledger: " + name_ + " gives back more than it held");
}

Account& Ledger::open(std::string name, std::size_t bound) {
  if (bound > budget_ - promised_)
    throw std::logic_error("ledger: no room for " + name + " (" + std::to_string(bound) + " bytes) within " +
                           std::to_string(budget_));
  promised_ += bound;
  return accounts_.emplace_back(*this, std::move(name), bound);
}

}  // namespace sluice
