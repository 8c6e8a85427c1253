// A pipeline with fake stages: each "image" is a few bytes derived from its index. Delays, failures, bad and
// large items are injected; what comes out is recorded for checking.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "graph/flow/pipeline.hpp"

namespace sluice::test {

struct FakeRun {
  // Shape: `epochs` x (train batches, then validation batches whose last one is short).
  unsigned epochs = 2, train_batches = 6, val_batches = 3;
  std::uint32_t batch = 8, short_batch = 3;
  unsigned slots = 2, decode_threads = 2, read_threads = 4;
  std::size_t read_ahead = 16, file_bytes = 20'000, place_bytes = 3000, grant = 32 * 1024;
  std::size_t chunks = 0;  // 0: as many as read_ahead grants
  std::size_t label_bytes = 4;

  // Injected behaviour; each may sleep or throw.
  std::function<void(const Ticket&)> on_next, on_read, on_decode, on_lane, on_augment;
  std::function<void(const Batch&)> on_upload, on_step;
  std::function<Outcome::Kind(const Ticket&)> read_kind = [](const Ticket&) { return Outcome::Kind::done; };
  std::function<Outcome::Kind(const Ticket&)> decode_kind = [](const Ticket&) { return Outcome::Kind::done; };

  std::function<void(Stages&)> change;

  // What came out.
  std::vector<std::uint64_t> stepped;               // batch numbers in order
  std::vector<std::vector<std::uint8_t>> contents;  // their pixels
  std::multiset<std::pair<std::uint64_t, std::uint32_t>> lane_seen;
  std::atomic<int> over{0};
  std::size_t peak = 0;
  unsigned lane_active_most = 0;

  [[nodiscard]] std::uint64_t per_epoch() const { return train_batches + val_batches; }
  [[nodiscard]] std::uint64_t batches() const { return epochs * per_epoch(); }
  [[nodiscard]] std::uint32_t places(std::uint64_t b) const {
    return val_batches > 0 && b % per_epoch() == per_epoch() - 1 ? short_batch : batch;
  }
  [[nodiscard]] static std::uint8_t pixel(const Ticket& t, std::size_t i) {
    return static_cast<std::uint8_t>((t.batch * 131 + t.place * 17 + t.epoch * 7 + i) & 0xFF);
  }

  [[nodiscard]] static std::uint8_t label_byte(const Ticket& t, std::size_t i) {
    return static_cast<std::uint8_t>((t.batch * 37 + t.place * 5 + i * 3) & 0xFF);
  }
  static void put_label(const Ticket& t, const Slot& slot) {
    const auto label = slot.label(t.place);
    for (std::size_t i = 0; i < label.size(); ++i) label[i] = label_byte(t, i);
  }

  [[nodiscard]] PipelineOptions options() const {
    PipelineOptions o;
    o.read_threads = read_threads;
    o.decode_threads = decode_threads;
    o.batch = batch;
    o.place_bytes = place_bytes;
    o.label_bytes = label_bytes;
    o.batches = batches();
    BudgetSplit& s = o.split;
    s.scratch = decode_threads * 1000;
    s.lane = 100'000;
    s.slots = slots;
    s.slot_bytes = Slot::bytes_for(batch, place_bytes, label_bytes);
    s.read_ahead = read_ahead;
    s.grant_chunks = ChunkPool::chunks_for(grant);
    s.chunks = chunks ? chunks : read_ahead * s.grant_chunks;
    s.budget = s.total();
    return o;
  }

  Stages stages() {
    Stages s;
    s.next = [this, at = std::uint64_t{0}, place = std::uint32_t{0}]() mutable -> std::optional<Ticket> {
      if (at == batches()) return std::nullopt;
      Ticket t;
      t.split = at % per_epoch() < train_batches ? Split::train : Split::val;
      t.epoch = static_cast<std::uint32_t>(at / per_epoch());
      t.batch = at;
      t.place = place;
      t.places = places(at);
      t.index = at * batch + place;
      if (++place == t.places) place = 0, ++at;
      if (on_next) on_next(t);
      return t;
    };
    s.read = [this](const Ticket& t, const TakeChunks& take, const Stop&) -> Outcome {
      if (on_read) on_read(t);
      const Outcome::Kind kind = read_kind(t);
      if (kind == Outcome::Kind::big) return Outcome::big();
      if (kind != Outcome::Kind::done) return {kind, {"", "", "injected", ""}};
      const auto chunks_taken = take(file_bytes);
      if (chunks_taken.empty()) return Outcome::big();
      for (std::size_t i = 0; i < file_bytes; ++i)
        chunks_taken[i / ChunkPool::chunk_bytes][i % ChunkPool::chunk_bytes] = pixel(t, i);
      return {};
    };
    s.decode = [this](const Ticket& t, Pieces pieces, Slot& slot, const Stop&) -> Outcome {
      if (on_decode) on_decode(t);
      const Outcome::Kind kind = decode_kind(t);
      if (kind != Outcome::Kind::done) return {kind, {"", "", "injected", ""}};
      std::size_t total = 0;
      for (const auto piece : pieces) total += piece.size();
      if (total != file_bytes) throw std::runtime_error("wrong number of bytes");
      std::memcpy(slot.place(t.place).data(), pieces[0].data(), place_bytes);
      put_label(t, slot);
      return {};
    };
    s.lane = [this, active = std::make_shared<std::atomic<unsigned>>(0)](
                 const Ticket& t, const std::optional<Error>& trouble, Slot& slot, const Stop&) -> Outcome {
      lane_active_most = std::max(lane_active_most, ++*active);
      if (on_lane) on_lane(t);
      lane_seen.insert({t.batch, t.place});
      for (std::size_t i = 0; i < place_bytes; ++i) slot.place(t.place)[i] = pixel(t, i);
      put_label(t, slot);
      if (trouble) slot.mark_bad({t.place, "file", trouble->cause, "other"});
      --*active;
      return {};
    };
    s.augment = [this](const Ticket& t, Slot& slot) -> Outcome {
      if (on_augment) on_augment(t);
      slot.place(t.place)[0] ^= 0xFF;
      return {};
    };
    s.upload = [this](Batch& b) -> Status {
      if (on_upload) on_upload(b);
      return Done{};
    };
    s.step = [this](Batch& b) -> Status {
      if (on_step) on_step(b);
      stepped.push_back(b.number);
      std::vector<std::uint8_t> all;
      for (std::uint32_t i = 0; i < b.slot->places(); ++i) {
        const auto place = b.slot->place(i);
        all.insert(all.end(), place.begin(), place.end());
        const auto label = b.slot->label(i);
        all.insert(all.end(), label.begin(), label.end());
      }
      contents.push_back(std::move(all));
      b.slot.release();
      return Done{};
    };
    s.step_over = [this] { ++over; };
    s.name = [](const Ticket& t) { return "file-" + std::to_string(t.index); };
    if (change) change(s);
    return s;
  }

  RunEnd run(const std::function<void(Pipeline&)>& tick = nullptr) {
    const PipelineOptions o = options();
    Pipeline pipeline(o, stages());
    RunEnd end = pipeline.run([&] {
      if (tick) tick(pipeline);
    });
    peak = pipeline.ledger().peak();
    return end;
  }

  // Every sample once, in its place, with its content, batches in order.
  [[nodiscard]] bool complete() const {
    if (stepped.size() != batches()) return false;
    for (std::uint64_t b = 0; b < batches(); ++b) {
      if (stepped[b] != b || contents[b].size() != places(b) * (place_bytes + label_bytes)) return false;
      for (std::uint32_t p = 0; p < places(b); ++p) {
        Ticket t;
        t.batch = b, t.place = p, t.epoch = static_cast<std::uint32_t>(b / per_epoch());
        const std::uint8_t* at = contents[b].data() + p * (place_bytes + label_bytes);
        for (std::size_t i = 0; i < place_bytes; ++i)
          if (at[i] != static_cast<std::uint8_t>(pixel(t, i) ^ (i == 0 ? 0xFF : 0))) return false;
        for (std::size_t i = 0; i < label_bytes; ++i)
          if (at[place_bytes + i] != label_byte(t, i)) return false;
      }
    }
    return true;
  }
};

inline void nap(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

}  // namespace sluice::test
