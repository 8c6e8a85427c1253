// One sample on its way through the graph, and the fixed pool they come from. Messages between nodes are
// pointers into this pool: nothing is allocated or lost per sample, and a cancelled run leaks nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/guarded.hpp"
#include "base/result.hpp"
#include "graph/flow/ticket.hpp"
#include "graph/memory/chunks.hpp"
#include "graph/memory/pieces.hpp"
#include "graph/memory/slots.hpp"

namespace sluice {

// How a stage ended for one sample.
struct Outcome {
  enum class Kind {
    done,
    big,   // needs more memory than its stage was allotted: goes through the big lane
    bad,   // its content cannot be used: replaced (training) or masked out (validation)
    fatal  // ends the run
  } kind = Kind::done;
  Error error{};  // of bad and fatal

  [[nodiscard]] static Outcome big() { return {Kind::big, {}}; }
  [[nodiscard]] static Outcome bad(Error e) { return {Kind::bad, std::move(e)}; }
  [[nodiscard]] static Outcome fatal(Error e) { return {Kind::fatal, std::move(e)}; }
};

struct Sample {
  Ticket ticket;
  std::size_t credit = 0;             // chunks granted and not yet taken
  std::vector<std::uint8_t*> chunks;  // the file's bytes
  std::vector<std::span<const std::uint8_t>> pieces;
  Slot* slot = nullptr;
  bool lane = false;             // must go through the big lane
  std::optional<Error> trouble;  // there: why its own content cannot be used
  Sample* next_parked = nullptr;

  // What one takes of the budget, with room for the chunks of a grant.
  [[nodiscard]] static std::size_t bytes_with(std::size_t chunks);
};

class SamplePool {
 public:
  SamplePool(std::size_t count, std::size_t chunks_each);
  [[nodiscard]] Sample* take();  // nullptr if all are on their way
  void give_back(Sample* sample);

 private:
  std::vector<Sample> samples_;
  Mutex mutex_;
  std::vector<Sample*> free_ GUARDED_BY(mutex_);
};

}  // namespace sluice
