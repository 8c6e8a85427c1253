#include "nodes/source/source.hpp"

#include "base/guarded.hpp"
#include "graph/flow/request.hpp"

namespace sluice {
namespace {

// What a waiting caller and the answer to it share.
struct Answer {
  MakeRoom make_room;
  Mutex mutex = {};
  Condition changed = {};
  std::optional<Outcome> outcome GUARDED_BY(mutex) = {};
};

class Awaited : public Delivery {
 public:
  explicit Awaited(Answer& answer) : answer_(&answer) {}
  ~Awaited() override {
    if (answer_) done(unanswered());
  }
  bool make_room(std::size_t bytes, std::vector<iovec>& where) override {
    return answer_->make_room(bytes, where);
  }
  void done(Outcome outcome) override {
    Answer& answer = *std::exchange(answer_, nullptr);
    const Lock lock(answer.mutex);
    answer.outcome = std::move(outcome);
    answer.changed
        .notify_all();  // with the lock held: the caller leaves, and its answer goes, once it is free
  }

 private:
  Answer* answer_;
};

}  // namespace

Outcome CompletingSource::fetch(std::size_t index, const ReadOptions& options, MakeRoom make_room,
                                const Stop& stop) const {
  Answer answer{make_room};
  begin(index, options, std::make_unique<Awaited>(answer), stop);
  const Lock lock(answer.mutex);
  answer.changed.wait(answer.mutex, [&]() REQUIRES(answer.mutex) { return answer.outcome.has_value(); });
  return std::move(*answer.outcome);
}

Fetched fetch_whole(const Source& source, std::size_t index, const ReadOptions& options,
                    std::vector<std::uint8_t>& room) {
  const Stop never;
  std::size_t bytes = 0;
  Outcome outcome = source.fetch(
      index, options,
      [&](std::size_t size, std::vector<iovec>& where) {
        if (room.size() < size) room.resize(size);
        where.push_back({room.data(), bytes = size});
        return true;
      },
      never);
  return {std::move(outcome), {room.data(), bytes}};
}

}  // namespace sluice
