#include "graph/flow/stage_runner.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/thread_limit.hpp"

namespace sluice {
namespace {

std::vector<Slot*> pointers(const std::vector<std::unique_ptr<Slot>>& slots, std::size_t from,
                            std::size_t to) {
  std::vector<Slot*> some;
  for (std::size_t i = from; i < to; ++i) some.push_back(slots[i].get());
  return some;
}

unsigned first_slots(const PipelineOptions& o) {
  return o.sizing ? std::min(o.sizing->least.slots, o.split.slots) : o.split.slots;
}

std::vector<std::unique_ptr<Slot>> make_slots(const PipelineOptions& o) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (unsigned i = 0; i < o.split.slots; ++i)
    slots.push_back(std::make_unique<Slot>(o.batch, o.place_bytes, o.label_bytes));
  return slots;
}

}  // namespace

StageRunner::StageRunner(const PipelineOptions& options, Stages stages, Ledger& ledger, Stop& stop,
                         Registry& registry, const std::function<void()>& wake, const Fills& queues)
    : options_(options),
      stages_(std::move(stages)),
      stop_(stop),
      wake_(wake),
      read_ahead_(options.sizing ? std::min(options.sizing->least.read_ahead, options.split.read_ahead)
                                 : options.split.read_ahead),
      lane_account_(ledger.open(name_of(NodeId::lane), options.split.lane)),
      chunks_(options.split.chunks, ledger.open("read-ahead", options.split.chunks * ChunkPool::chunk_bytes),
              wake),
      samples_(options.split.read_ahead + std::size_t{options.split.slots} * options.batch,
               options.split.grant_chunks),
      slots_(make_slots(options)),
      slots_wanted_(first_slots(options)),
      spare_(pointers(slots_, first_slots(options), slots_.size())),
      gate_(pointers(slots_, 0, first_slots(options)), options.first_batch),
      registry_(registry) {
  lay_out(registry, options_, fills(queues));
  // Held from the first byte to the last, so charged whole: their pages stay resident once touched.
  ledger.open("index", options.split.index).charge(options.split.index);
  ledger.open("batch slots", options.split.slots * options.split.slot_bytes)
      .charge(options.split.slots * options.split.slot_bytes);
  ledger.open("tickets", options.split.tickets).charge(options.split.tickets);
  ledger.open("scratch", options.split.scratch).charge(options.split.scratch);
  ledger.open("augment", options.split.copies).charge(options.split.copies);
}

Fills StageRunner::fills(Fills queues) {
  queues.in_flight = [this] { return static_cast<double>(in_flight_.load(std::memory_order_relaxed)); };
  queues.chunks = [this] { return static_cast<double>(chunks_.granted()); };
  queues.decoding = [this] { return static_cast<double>(decoding_.load(std::memory_order_relaxed)); };
  queues.records = stages_.records;
  return queues;
}

Outcome StageRunner::guarded(NodeId id, const Ticket& ticket, FunctionRef<Outcome()> body) {
  const char* const stage = name_of(id);
  Outcome outcome;
  try {
    outcome = body();
  } catch (const std::exception& e) {
    outcome = Outcome::fatal({stage, "", as_error(stage, e).cause, ""});
  } catch (...) {
    outcome = Outcome::fatal({stage, "", "unknown exception", ""});
  }
  if (outcome.kind == Outcome::Kind::done || outcome.kind == Outcome::Kind::big) return outcome;
  if (outcome.error.stage.empty()) outcome.error.stage = stage;
  if (outcome.error.subject.empty()) outcome.error.subject = stages_.name(ticket);
  if (outcome.kind == Outcome::Kind::fatal) stop_.fail(outcome.error);
  return outcome;
}

bool StageRunner::checked(NodeId id, const std::string& subject, const std::function<Status()>& body) {
  const char* const stage = name_of(id);
  Error error;
  try {
    const Status status = body();
    if (status) return true;
    error = status.error();
  } catch (const std::exception& e) {
    error.cause = as_error(stage, e).cause;
  } catch (...) {
    error.cause = "unknown exception";
  }
  if (error.stage.empty()) error.stage = stage;
  if (error.subject.empty()) error.subject = subject;
  stop_.fail(std::move(error));
  return false;
}

bool StageRunner::batch_stage(NodeId id, const std::function<Status(Batch&)>& body, Batch& batch) {
  const Serving serving(node(id));
  return checked(id, "batch " + std::to_string(batch.number), [&] { return body(batch); });
}

bool StageRunner::step_begin() { return checked(NodeId::step, "", stages_.step_begin); }

void StageRunner::admit(const Emit& to_read) {
  while (!no_more_ && !stop_.requested()) {
    Sample* sample = nullptr;
    // Credit last: giving it back would wake this very body, over and over.
    if (in_flight_.load(std::memory_order_relaxed) < read_ahead_.load(std::memory_order_relaxed))
      sample = samples_.take();
    if (sample && !chunks_.try_grant(options_.split.grant_chunks))
      samples_.give_back(std::exchange(sample, nullptr));
    WaitTime& held_up = node(NodeId::sampler).held_up();
    if (!sample) {
      if (!held_up.waiting()) held_up.begin(now_ns());
      return;
    }
    if (held_up.waiting()) held_up.end(now_ns());
    std::optional<Ticket> ticket;
    node(NodeId::sampler).arrive();
    {
      const Serving serving(node(NodeId::sampler));
      const Outcome drawn = guarded(NodeId::sampler, sample->ticket, [&] {
        ticket = stages_.next();
        return Outcome{};
      });
      if (drawn.kind != Outcome::Kind::done) return;
    }
    if (!ticket) {
      no_more_ = true;
      chunks_.give_back_credit(options_.split.grant_chunks);
      samples_.give_back(sample);
      return;
    }
    sample->ticket = *ticket;
    sample->credit = options_.split.grant_chunks;
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    node(NodeId::read).arrive();
    to_read(sample);
  }
}

void StageRunner::use_read_ahead(std::size_t files) {
  read_ahead_.store(std::min(files, options_.split.read_ahead), std::memory_order_relaxed);
  wake_();
}

void StageRunner::give_bytes_back(Sample* sample) {
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  sample->pieces.clear();
  chunks_.give_back_credit(std::exchange(sample->credit, 0));
  chunks_.give_back(sample->chunks);
  wake_();
}

void StageRunner::read(Sample* sample) {
  const Serving serving(node(NodeId::read));
  if (stop_.requested()) return;
  Reading reading{sample, StorageProfile::Read(storage_)};
  const auto take = [&](std::size_t bytes) { return take_chunks(reading, bytes); };
  finish_read(reading, guarded(NodeId::read, sample->ticket,
                               [&] { return stages_.read(sample->ticket, take, stop_); }));
}

bool StageRunner::completes(const Sample* sample) const {
  return stages_.begin_read && (!stages_.read || stages_.completes(sample->ticket));
}

Reading StageRunner::open_read(Sample* sample) {
  return {sample, StorageProfile::Read(storage_), node(NodeId::read).begin()};
}

void StageRunner::begin_read(Request request) {
  if (stop_.requested()) return request.done(Outcome::big());  // the gate drops it
  const Ticket ticket = request.ticket();  // the sample may have gone on before the call returns
  Outcome outcome = guarded(NodeId::read, ticket, [&] {
    stages_.begin_read(ticket, std::move(request), stop_);
    return Outcome{};
  });
  if (outcome.kind != Outcome::Kind::done && request.open()) request.done(std::move(outcome));
}

std::span<std::uint8_t* const> StageRunner::take_chunks(Reading& reading, std::size_t bytes) {
  if (reading.size != 0) throw std::logic_error("read: memory was taken twice for one file");
  const std::size_t needed = ChunkPool::chunks_for(bytes);
  if (needed > options_.split.grant_chunks || needed == 0 || stop_.requested()) return {};
  Sample* const sample = reading.sample;
  reading.size = bytes;
  chunks_.take(needed, sample->chunks);
  chunks_.give_back_credit(std::exchange(sample->credit, 0) - needed);
  return sample->chunks;
}

void StageRunner::finish_read(Reading& reading, Outcome outcome) {
  Sample* const sample = reading.sample;
  // Blocking reads were already guarded in read().
  if (reading.begun != 0) {
    outcome = guarded(NodeId::read, sample->ticket, [&] { return std::move(outcome); });
    node(NodeId::read).end(reading.begun);
  }
  node(NodeId::gate).arrive();
  if (outcome.kind == Outcome::Kind::done) {
    reading.timed.done(reading.size);
    std::size_t left = reading.size;
    for (std::uint8_t* chunk : sample->chunks) {
      sample->pieces.emplace_back(chunk, std::min(left, ChunkPool::chunk_bytes));
      left -= sample->pieces.back().size();
    }
    return;
  }
  sample->lane = true;
  if (outcome.kind == Outcome::Kind::bad) sample->trouble = std::move(outcome.error);
  give_bytes_back(sample);  // what waits for the lane holds no credit that others could use
}

void StageRunner::drop_reads() {
  (void)checked(NodeId::read, "", [&] {
    stages_.drop_reads();
    return Status(Done{});
  });
}

void StageRunner::gate(Sample* arrived, Slot* returned, const Emit& to_decode, const Emit& to_lane) {
  if (stop_.requested()) return;
  go_.clear();
  try {
    if (arrived) {
      const Serving serving(node(NodeId::gate));
      gate_.arrive(arrived, go_);
    } else if (returned) {
      spare_.push_back(returned);
    }
    while (!spare_.empty() && slots_.size() - spare_.size() < slots_wanted_) {
      gate_.slot_came_back(spare_.back(), go_);
      spare_.pop_back();
    }
  } catch (const std::exception& e) {
    return stop_.fail({name_of(NodeId::gate), arrived ? stages_.name(arrived->ticket) : "",
                       as_error(name_of(NodeId::gate), e).cause, ""});
  }
  WaitTime& held_up = node(NodeId::gate).held_up();
  if (const bool parked = gate_.parked() > 0; parked != held_up.waiting())
    parked ? held_up.begin(now_ns()) : held_up.end(now_ns());
  for (Sample* sample : go_) {
    decoding_.fetch_add(1, std::memory_order_relaxed);
    node(sample->lane ? NodeId::lane : NodeId::decode).arrive();
    (sample->lane ? to_lane : to_decode)(sample);
  }
}

bool StageRunner::decode(Sample* sample) {
  const Serving serving(node(NodeId::decode));
  if (stop_.requested()) return true;  // dropped by the stages behind
  Outcome outcome = guarded(NodeId::decode, sample->ticket, [&] {
    return stages_.decode(sample->ticket, sample->pieces, *sample->slot, stop_);
  });
  give_bytes_back(sample);
  if (outcome.kind == Outcome::Kind::done) {
    node(NodeId::augment).arrive();
    return true;
  }
  if (outcome.kind == Outcome::Kind::bad) sample->trouble = std::move(outcome.error);
  node(NodeId::lane).arrive();
  return false;
}

void StageRunner::lane(Sample* sample) {
  const Serving serving(node(NodeId::lane));
  if (stop_.requested()) return;
  lane_account_.charge(options_.split.lane);
  (void)guarded(NodeId::lane, sample->ticket, [&] {
    Outcome outcome = stages_.lane(sample->ticket, sample->trouble, *sample->slot, stop_);
    if (outcome.kind == Outcome::Kind::done || outcome.kind == Outcome::Kind::fatal) return outcome;
    return Outcome::fatal(
        {"", outcome.error.subject, "the lane must settle a sample; " + outcome.error.cause, ""});
  });
  lane_account_.release(options_.split.lane);
  node(NodeId::augment).arrive();
}

void StageRunner::augment(Sample* sample) {
  const Serving serving(node(NodeId::augment));
  if (stop_.requested()) return;
  (void)guarded(NodeId::augment, sample->ticket,
                [&] { return stages_.augment(sample->ticket, *sample->slot); });
  node(NodeId::collate).arrive();
}

Slot* StageRunner::collate(Sample* sample) {
  const Serving serving(node(NodeId::collate));
  if (stop_.requested()) return nullptr;
  Slot* slot = sample->slot;
  decoding_.fetch_sub(1, std::memory_order_relaxed);
  samples_.give_back(sample);
  wake_();
  return slot->fill_one() ? slot : nullptr;
}

void StageRunner::step_over() {
  (void)checked(NodeId::step, "", [&] {
    stages_.step_over();
    return Status(Done{});
  });
}

}  // namespace sluice
