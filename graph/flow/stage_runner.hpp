// What each node does with a sample, apart from the stage's own work: admission by credit, trimming, parking,
// giving bytes and slots back, counting, and turning whatever goes wrong into a failure that names stage and
// file. No TBB here: the pipeline calls these from its nodes and threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "graph/figures/layout.hpp"
#include "graph/flow/gate.hpp"
#include "graph/flow/stages.hpp"
#include "graph/memory/chunks.hpp"

namespace sluice {

class StageRunner {
 public:
  using Emit = std::function<void(Sample*)>;

  // `wake` asks for another call of admit(), soon, on any thread.
  StageRunner(const PipelineOptions& options, Stages stages, Ledger& ledger, Stop& stop, Registry& registry,
              const std::function<void()>& wake, const Fills& queues);

  void admit(const Emit& to_read);  // serial
  void read(Sample* sample);        // on a reader thread
  void gate(Sample* arrived, Slot* returned, const Emit& to_decode,
            const Emit& to_lane);             // serial; at most one of the two
  [[nodiscard]] bool decode(Sample* sample);  // false: on to the big lane
  void lane(Sample* sample);                  // on the lane's thread
  void augment(Sample* sample);
  [[nodiscard]] Slot* collate(Sample* sample);  // the slot, once it is full
  [[nodiscard]] bool upload(Batch& batch) { return batch_stage(NodeId::upload, stages_.upload, batch); }
  [[nodiscard]] bool step(Batch& batch) { return batch_stage(NodeId::step, stages_.step, batch); }
  [[nodiscard]] bool step_begin();
  void step_over();

  // Within what the split gave. Files in flight at most; batch slots in use, where more come in when gate()
  // is called next, with neither a sample nor a slot if need be.
  void use_read_ahead(std::size_t files);
  void use_slots(unsigned slots) { slots_wanted_ = slots; }
  [[nodiscard]] unsigned slots_in_use() const { return slots_wanted_; }
  [[nodiscard]] std::size_t read_ahead() const { return read_ahead_.load(std::memory_order_relaxed); }
  void tell(const std::string& line) { stages_.tell(line); }

  [[nodiscard]] NodeStats& node(NodeId id) { return registry_.node(id); }
  [[nodiscard]] const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  [[nodiscard]] const PipelineOptions& options() const { return options_; }
  [[nodiscard]] StorageProfile& storage() { return storage_; }

 private:
  Outcome guarded(NodeId id, const Ticket& ticket, FunctionRef<Outcome()> body);
  bool checked(NodeId id, const std::string& subject, const std::function<Status()>& body);
  bool batch_stage(NodeId id, const std::function<Status(Batch&)>& body, Batch& batch);
  void give_bytes_back(Sample* sample);
  [[nodiscard]] Fills fills(Fills queues);

  PipelineOptions options_;
  Stages stages_;
  Stop& stop_;
  std::function<void()> wake_;
  std::atomic<std::size_t> read_ahead_;  // files in flight at most, at this time
  Account& lane_account_;
  ChunkPool chunks_;
  SamplePool samples_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<unsigned> slots_wanted_;
  std::vector<Slot*> spare_;  // slots not in use; the gate's
  SlotGate gate_;
  std::vector<Sample*> go_;  // the gate's answer, reused
  std::atomic<std::size_t> in_flight_{0}, decoding_{0};
  StorageProfile storage_;
  bool no_more_ = false;
  Registry& registry_;
};

}  // namespace sluice
