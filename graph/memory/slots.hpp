// Batch slots: the only place where decoded samples live, each with its label. A fixed number, mapped once,
// each large enough for the largest batch of the run. A slot is bound to a batch by the gate, filled place by
// place, consumed, and comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "graph/memory/mapping.hpp"

namespace sluice {

// An image that could not be used, as it stands in quarantine.jsonl.
struct Bad {
  std::uint32_t place;
  std::string file, cause;
  std::string replacement;  // empty: masked out (validation)
};

class Slot {
 public:
  Slot(std::uint32_t places, std::size_t place_bytes, std::size_t label_bytes = sizeof(std::int32_t));
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t places, std::size_t place_bytes,
                                             std::size_t label_bytes = sizeof(std::int32_t));

  void bind(std::uint64_t batch);   // empty so far; how many places it has comes with its first sample
  void open(std::uint32_t places);  // throws std::logic_error where there are none, or not so many
  [[nodiscard]] bool is_open() const { return places_ != 0; }

  [[nodiscard]] std::uint64_t batch() const { return batch_; }
  [[nodiscard]] std::uint32_t places() const { return places_; }
  [[nodiscard]] std::span<std::uint8_t> place(std::uint32_t i) const {
    return {memory_.data() + i * place_bytes_, place_bytes_};
  }
  [[nodiscard]] std::span<std::uint8_t> label(std::uint32_t i) const {
    return {labels_ + i * label_bytes_, label_bytes_};
  }
  // Those of all places, where each is one number. Throws std::logic_error where it is not.
  template <class Number = std::int32_t>
  [[nodiscard]] std::span<Number> labels() const {
    if (label_bytes_ != sizeof(Number)) throw std::logic_error("slot: a label is not one such number");
    return {reinterpret_cast<Number*>(labels_), places_};
  }
  [[nodiscard]] std::span<std::uint8_t> memory() const { return memory_.bytes(); }

  void mark_bad(Bad bad);
  [[nodiscard]] std::vector<Bad> take_bad();  // sorted by place
  [[nodiscard]] bool fill_one() {
    return left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }  // true for the last

 private:
  std::uint32_t capacity_;
  std::size_t place_bytes_, label_bytes_;
  Mapping memory_;
  std::uint8_t* labels_;
  std::uint64_t batch_ = 0;
  std::uint32_t places_ = 0;
  std::atomic<std::uint32_t> left_{0};
  Mutex bad_mutex_;
  std::vector<Bad> bad_ GUARDED_BY(bad_mutex_);
};

// The right to read a filled slot. Gives it back exactly once: by release(), or when it goes out of scope.
class SlotLease {
 public:
  SlotLease() = default;
  SlotLease(Slot* slot, const std::function<void(Slot*)>* give_back) : slot_(slot), give_back_(give_back) {}
  SlotLease(SlotLease&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)), give_back_(other.give_back_) {}
  SlotLease& operator=(SlotLease&& other) noexcept {
    release();
    slot_ = std::exchange(other.slot_, nullptr);
    give_back_ = other.give_back_;
    return *this;
  }
  ~SlotLease() { release(); }
  void release() {
    if (Slot* slot = std::exchange(slot_, nullptr)) (*give_back_)(slot);
  }
  [[nodiscard]] Slot* get() const { return slot_; }
  Slot* operator->() const { return slot_; }

 private:
  Slot* slot_ = nullptr;
  const std::function<void(Slot*)>* give_back_ = nullptr;
};

}  // namespace sluice
