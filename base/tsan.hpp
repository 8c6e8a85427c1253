// Tells ThreadSanitizer what oneTBB promises, since Debian's library is not instrumented: whoever receives a
// message sees what its sender did, the bodies of a serial node run one after the other, and whoever has
// waited for a graph sees what all its bodies did. Everything else stays under TSan's eyes. Nothing in other
// builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace sluice {

inline void message_sent([[maybe_unused]] const void* message) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(message));
#endif
}

inline void message_received([[maybe_unused]] const void* message) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(message));
#endif
}

// Stands in a body for as long as it runs: ordered before the graph's end, and with `serial` after the node's
// last.
class BodyOrder {
 public:
  explicit BodyOrder(const void* graph, const void* serial = nullptr) : graph_(graph), serial_(serial) {
    if (serial_) message_received(serial_);
  }
  ~BodyOrder() {
    if (serial_) message_sent(serial_);
    message_sent(graph_);
  }
  BodyOrder(const BodyOrder&) = delete;
  BodyOrder& operator=(const BodyOrder&) = delete;

 private:
  const void *graph_, *serial_;
};

}  // namespace sluice
