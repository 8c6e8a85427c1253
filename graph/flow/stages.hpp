// What the graph asks of its stages: plain functions, given from outside. The real data path and the tests'
// fakes fill in the same struct. A function may throw; the graph turns that into a failure with stage and
// file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/function_ref.hpp"
#include "graph/figures/registry.hpp"
#include "graph/figures/stats.hpp"
#include "graph/flow/request.hpp"
#include "graph/flow/stop.hpp"
#include "graph/memory/sample.hpp"

namespace sluice {

struct Batch {
  std::uint64_t number = 0;
  SlotLease slot;                // may be released early, once its contents are no longer needed
  std::shared_ptr<void> device;  // whatever `upload` made of it
  Nanoseconds waited = 0;        // how long `step` stood idle before it got this batch
};

// Memory for a file of so many bytes: its chunks, in order; empty if the file is larger than a ticket's
// grant or the run was stopped, and then `read` must return Outcome::big().
using TakeChunks = FunctionRef<std::span<std::uint8_t* const>(std::size_t bytes)>;

struct Stages {
  std::function<std::optional<Ticket>()> next;  // one after the other; nothing: the last one was given
  // Reading is in one of two styles; either may be empty if no ticket needs it. `completes` says which one a
  // ticket needs, where both are there.
  std::function<Outcome(const Ticket&, const TakeChunks&, const Stop&)> read;  // may block
  // Moves the request to whoever will answer it, and returns at once; never called by two threads at a time.
  // It may be called from within Request::done(), so the caller of that must hold no lock that it needs.
  std::function<void(const Ticket&, Request&&, const Stop&)> begin_read;
  std::function<bool(const Ticket&)> completes = [](const Ticket&) { return true; };
  // The run is stopped: what was begun should be done soon, whatever comes of it. Returns at once.
  std::function<void()> drop_reads = [] {};
  // Once a stop is asked for, what it returns no longer matters, only that it does so soon.
  std::function<Outcome(const Ticket&, Pieces, Slot&, const Stop&)> decode;
  // For a sample that was too large (no trouble) or whose content is bad; may block, runs one at a time.
  std::function<Outcome(const Ticket&, const std::optional<Error>& trouble, Slot&, const Stop&)> lane;
  std::function<Outcome(const Ticket&, Slot&)> augment;
  std::function<Status(Batch&)> upload;  // on its own thread, in batch order; may block
  std::function<Status()> step_begin = [] {
    return Status(Done{});
  };                                               // on step's thread, before its first batch
  std::function<Status(Batch&)> step;              // on its own thread, in batch order; may block
  std::function<void()> step_over = [] {};         // on step's thread after its last batch, cancelled or not
  std::function<std::string(const Ticket&)> name;  // the file, for messages
  std::function<void(const std::string&)> tell = [](const std::string&) {};  // decisions; on run()'s thread
  Registry::Fill records = nullptr;  // how many records wait for `log`
};

}  // namespace sluice
