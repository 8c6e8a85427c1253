// The processes that train one network together: how they find each other, agree, and notice when one is
// gone. Gradients are summed in model/device/parallel.hpp. This header is free of torch.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/ranks/seat.hpp"

namespace sluice {

struct RanksOptions {
  Seat seat;
  std::string device = "cpu";             // as resolve_device gives it
  std::chrono::milliseconds timeout{};    // of a collective, and of the whole of join
  std::chrono::milliseconds heartbeat{};  // a rank that is silent for so long is lost
  // Whether this process has been told to end: then there is no time to find out who is gone, only to save.
  std::function<bool()> hurried = {};
};

class Ranks {
 public:
  // Waits until all are there, for `timeout` in all and a moment more. Where that was not enough, a thread
  // may be left behind that hangs in torch.
  static Result<std::shared_ptr<Ranks>> join(const RanksOptions& options);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] const Seat& seat() const;

  // Rank 0's value on every rank; each calls it with the same name, once. Others' values are ignored.
  Result<std::string> from_first(const std::string& name, const std::string& value);
  // Returns once all ranks have called it.
  Status meet(const std::string& name);

  // All ranks call it with equally many numbers, on one thread, equally often. The answer is the sum over all
  // ranks of what the call BEFORE this one was given (zeros the first time): it has travelled meanwhile, and
  // nobody waits for it.
  Result<std::vector<std::int64_t>> exchange(std::span<const std::int64_t> mine);

  // From now on `lost` is called, once, on a thread of its own, when a rank is lost or has told that it
  // failed; the error names the rank.
  void watch(std::function<void(const Error&)> lost);
  // Who is known to be gone; waits for it. A collective that failed asks with `patience`: it notices the end
  // of a connection at once, and who it was only later.
  [[nodiscard]] std::optional<Error> verdict(std::chrono::milliseconds at_most) const;
  [[nodiscard]] std::chrono::milliseconds patience() const;
  // Tells the others that this rank fails, so that they end and say why. Never blocks for long.
  void fail(const Error& why);
  // Ends the watch in peace: silence is expected from now on. A collective: all come to it, or the wait ends
  // after `at_most`.
  void leave(std::chrono::milliseconds at_most);
  // Makes collectives under way on this rank fail soon, where the backend can. On any thread.
  void abort();

  struct Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }  // for model/

 private:
  explicit Ranks(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
