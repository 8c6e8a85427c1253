#include "graph/memory/chunks.hpp"

#include <stdexcept>

namespace sluice {

ChunkPool::ChunkPool(std::size_t chunks, Account& account, std::function<void()> on_credit)
    : total_(chunks), account_(account), on_credit_(std::move(on_credit)), memory_(chunks * chunk_bytes) {
  free_.reserve(chunks);
  // Taken from the back: the lowest addresses first, so that a run that needs little touches little.
  for (std::size_t i = chunks; i-- > 0;) free_.push_back(memory_.data() + i * chunk_bytes);
}

bool ChunkPool::try_grant(std::size_t chunks) {
  const Lock lock(mutex_);
  if (total_ - granted_ < chunks) return false;
  account_.charge(chunks * chunk_bytes);
  granted_ += chunks;
  return true;
}

void ChunkPool::give_back_credit(std::size_t chunks) {
  if (chunks == 0) return;
  {
    const Lock lock(mutex_);
    account_.release(chunks * chunk_bytes);
    granted_ -= chunks;
  }
  on_credit_();
}

void ChunkPool::take(std::size_t chunks, std::vector<std::uint8_t*>& into) {
  const Lock lock(mutex_);
  if (free_.size() < chunks) throw std::logic_error("chunk pool: more chunks taken than credit was granted");
  for (std::size_t i = 0; i < chunks; ++i) {
    into.push_back(free_.back());
    free_.pop_back();
  }
}

void ChunkPool::give_back(std::vector<std::uint8_t*>& chunks) {
  const std::size_t count = chunks.size();
  if (count == 0) return;
  {
    const Lock lock(mutex_);
    free_.insert(free_.end(), chunks.begin(), chunks.end());
    account_.release(count * chunk_bytes);
    granted_ -= count;
  }
  chunks.clear();
  on_credit_();
}

std::size_t ChunkPool::granted() const {
  const Lock lock(mutex_);
  return granted_;
}

}  // namespace sluice
