// A read in completion style, as its source sees it: memory is taken once the size is known, and done() tells
// how it ended. Both may be called on any thread, and within the call that began the request. A request that
// goes out of scope unanswered ends the run. As long as it is there, so is the memory that it was given, also
// after the run was stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "graph/figures/nodes.hpp"
#include "graph/figures/storage.hpp"
#include "graph/memory/sample.hpp"

namespace sluice {

// What the graph knows of a read under way, in either style.
struct Reading {
  Sample* sample;
  StorageProfile::Read timed;
  Nanoseconds begun = 0;  // of a request: it is served from here until it is done
  std::size_t size = 0;   // once memory was taken
};

// How a request ends that its source dropped.
[[nodiscard]] inline Outcome unanswered() {
  return Outcome::fatal({name_of(NodeId::read), "", "the source gave the request up without an answer", ""});
}

class Request {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual std::span<std::uint8_t* const> take(Reading& reading, std::size_t bytes) = 0;
    virtual void done(Reading reading, Outcome outcome) = 0;
  };

  Request(std::shared_ptr<Owner> owner, Reading reading)
      : owner_(std::move(owner)), reading_(std::move(reading)) {}
  Request(Request&& other) noexcept = default;
  Request& operator=(Request&&) = delete;
  ~Request() {
    if (open()) done(unanswered());
  }

  // Memory for so many bytes, as TakeChunks gives it; once. Empty if they are more than a ticket's grant, or
  // if the run was stopped: the request is then done with Outcome::big().
  [[nodiscard]] std::span<std::uint8_t* const> take(std::size_t bytes) {
    return owner_->take(reading_, bytes);
  }
  // Once; nothing of the request, its memory included, is the source's any more.
  void done(Outcome outcome) {
    const std::shared_ptr<Owner> owner = std::move(owner_);
    owner->done(std::move(reading_), std::move(outcome));
  }
  [[nodiscard]] const Ticket& ticket() const { return reading_.sample->ticket; }
  [[nodiscard]] bool open() const { return owner_ != nullptr; }  // neither done nor moved from

 private:
  std::shared_ptr<Owner> owner_;
  Reading reading_;
};

}  // namespace sluice
