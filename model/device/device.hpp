// What a device must be able to do: the one seam between the program and the hardware. A device works off two
// queues beside the host, one of copies and one of arithmetic; each keeps the order in which it was given
// work, and only events order one against the other. Nothing waits for a queue, except finish_copies. On the
// CPU the host's memory is the device's, and work is done when the call returns.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "model/train/convert.hpp"

namespace sluice {

class Device {
 public:
  enum class Queue { copy, compute };
  // Complete once the work is that was in a queue when the event was last recorded there; one that was never
  // recorded counts as complete.
  struct Event {
    virtual ~Event() = default;
  };
  // Work that was recorded once and can be done again in one go.
  struct Captured {
    virtual ~Captured() = default;
    virtual Status replay() = 0;  // into the compute queue
  };
  struct Memory {
    std::size_t total = 0, free = 0;  // of the device
    std::size_t ours = 0, peak = 0;   // taken by this process now, and at most so far
    std::size_t allocated = 0;        // of that, what allocate() gave
  };

  virtual ~Device() = default;

  // What is queued on this thread from now on, by torch too, goes to this device and its compute queue.
  virtual void enter() = 0;
  // True: batches need no copy and no ring.
  [[nodiscard]] virtual bool shares_host_memory() const = 0;

  [[nodiscard]] virtual Result<std::shared_ptr<void>> allocate(std::size_t bytes) = 0;
  // Page-locks host memory, so that copies from it run by themselves.
  virtual Status pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  // From the host, in the copy queue.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  // Calls `then` on some thread, once what the copy queue holds now is done. `then` may not use the device.
  // Where this fails, `then` is not called.
  virtual Status after_copies(std::function<void()> then) = 0;
  virtual void finish_copies() = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<Event>> make_event() = 0;
  virtual Status record(Event& event, Queue queue) = 0;
  virtual Status wait(Event& event, Queue queue) = 0;  // the queue waits, not the caller

  virtual Status convert(const Conversion& job) = 0;  // in the compute queue
  // Records what `work` queues for the compute queue, and does not do it. Where that is impossible, nothing
  // has been done.
  [[nodiscard]] virtual Result<std::unique_ptr<Captured>> capture(const std::function<Status()>& work) = 0;

  [[nodiscard]] virtual Memory memory() const = 0;
  [[nodiscard]] virtual std::string bus_id() const { return ""; }  // as drivers' tools name it; empty: none
};

// "cpu" or "cuda", as resolve_device gives it; `index` counts the GPUs of this host. The same device for all
// who ask, as long as one of them holds it: it has one pair of queues.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(const std::string& name, int index = 0);

}  // namespace sluice
