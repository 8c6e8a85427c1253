#include "graph/flow/completion.hpp"

#include <algorithm>

namespace sluice {

bool CompletionTable::enter(Sample* sample) {
  const Lock lock(mutex_);
  if (settled_) return false;
  entries_.push_back(sample);
  hooks_.hold();
  return true;
}

bool CompletionTable::claim(Sample* sample) {
  const Lock lock(mutex_);
  const auto at = std::find(entries_.begin(), entries_.end(), sample);
  if (at == entries_.end()) return false;
  *at = entries_.back();
  entries_.pop_back();
  return true;
}

void CompletionTable::hand_on(Sample* sample) {
  hooks_.deliver(sample);
  hooks_.let_go();
}

void CompletionTable::settle() {
  std::size_t open = 0;
  {
    const Lock lock(mutex_);
    settled_ = true;
    open = entries_.size();
    entries_.clear();
  }
  while (open-- > 0) hooks_.let_go();
}

std::size_t CompletionTable::size() const {
  const Lock lock(mutex_);
  return entries_.size();
}

}  // namespace sluice
