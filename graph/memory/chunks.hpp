// Read-ahead memory: one mapping cut into chunks of 16 KiB. A file's bytes are a list of chunks, so there is
// no fragmentation and no per-file allocation. A sample is first granted credit for a fixed number of chunks;
// once the file is open, the credit is trimmed to what the file needs, and only then are chunks taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/guarded.hpp"
#include "graph/memory/ledger.hpp"
#include "graph/memory/mapping.hpp"

namespace sluice {

class ChunkPool {
 public:
  static constexpr std::size_t chunk_bytes = 16 * 1024;
  [[nodiscard]] static constexpr std::size_t chunks_for(std::size_t bytes) {
    return (bytes + chunk_bytes - 1) / chunk_bytes;
  }

  // `on_credit` is called, without the lock held, whenever credit has come back.
  ChunkPool(std::size_t chunks, Account& account, std::function<void()> on_credit);

  [[nodiscard]] bool try_grant(std::size_t chunks);
  void give_back_credit(std::size_t chunks);                        // credit for which no chunk was taken
  void take(std::size_t chunks, std::vector<std::uint8_t*>& into);  // within the credit held: never waits
  void give_back(std::vector<std::uint8_t*>& chunks);  // chunks and their credit; empties the list

  [[nodiscard]] std::size_t total() const { return total_; }
  [[nodiscard]] std::size_t granted() const;

 private:
  std::size_t total_;
  Account& account_;
  std::function<void()> on_credit_;
  Mapping memory_;
  mutable Mutex mutex_;
  std::vector<std::uint8_t*> free_ GUARDED_BY(mutex_);
  std::size_t granted_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice
