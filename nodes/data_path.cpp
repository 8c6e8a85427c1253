#include "nodes/data_path.hpp"

#include "base/guarded.hpp"
#include "graph/memory/mapping.hpp"
#include "nodes/jpeg/frame.hpp"
#include "nodes/lane.hpp"

namespace sluice {
namespace {

// One tool for each decode thread, however TBB moves its workers about.
template <class Tool>
class Tools {
 public:
  explicit Tools(std::vector<Tool> all) : all_(std::move(all)) {
    for (Tool& tool : all_) free_.push_back(&tool);
  }

  template <class Body>
  auto with_one(Body&& body) {
    const Loan loan(*this);
    return body(*loan.tool);
  }

 private:
  struct Loan {
    explicit Loan(Tools& o) : owner(o) {
      const Lock lock(owner.mutex_);
      tool = owner.free_.back();
      owner.free_.pop_back();
    }
    ~Loan() {
      const Lock lock(owner.mutex_);
      owner.free_.push_back(tool);
    }
    Loan(const Loan&) = delete;
    Tools& owner;
    Tool* tool;
  };
  std::vector<Tool> all_;
  Mutex mutex_;
  std::vector<Tool*> free_ GUARDED_BY(mutex_);
};

ImageSize out_size(const DataPathOptions& o) { return {o.decode.out, o.decode.out}; }

std::vector<Mapping> make_copies(const DataPathOptions& o) {
  std::vector<Mapping> copies;
  for (unsigned i = 0; i < o.decode_threads; ++i)
    copies.emplace_back(augment_bytes(o.augment.policy, out_size(o)));
  return copies;
}

// Where the bytes go, and the same memory as decode will see it.
bool spread_out(std::span<std::uint8_t* const> chunks, std::size_t bytes, std::vector<iovec>& where,
                std::vector<std::span<const std::uint8_t>>& pieces) {
  for (std::uint8_t* chunk : chunks) {
    where.push_back({chunk, std::min(bytes, ChunkPool::chunk_bytes)});
    pieces.emplace_back(chunk, where.back().iov_len);
    bytes -= where.back().iov_len;
  }
  return bytes == 0;
}

// Looked at here already, so that an image of too many pixels does not wait for a slot with bytes that others
// could use.
Outcome within_pixels(Outcome read, Pieces pieces, std::uint64_t max_pixels) {
  if (read.kind != Outcome::Kind::done) return read;
  if (const auto size = claimed_size(pieces))
    if (Status few = sluice::within_pixels(*size, max_pixels); !few)
      return Outcome::bad(std::move(few.error()));
  return read;
}

// From a source that completes into the graph's chunks.
class ToChunks : public Delivery {
 public:
  ToChunks(Request&& request, std::uint64_t max_pixels)
      : request_(std::move(request)), max_pixels_(max_pixels) {}
  bool make_room(std::size_t bytes, std::vector<iovec>& where) override {
    return spread_out(request_.take(bytes), bytes, where, pieces_);
  }
  void done(Outcome outcome) override {
    request_.done(within_pixels(std::move(outcome), pieces_, max_pixels_));
  }

 private:
  Request request_;
  std::uint64_t max_pixels_;
  std::vector<std::span<const std::uint8_t>> pieces_;
};

struct State {
  State(std::shared_ptr<const DataSets> s, const Sequence& sequence, const DataPathOptions& o)
      : sets(std::move(s)),
        options(o),
        sampler(sequence, o.first_batch),
        decoders(std::vector<JpegDecoder>(o.decode_threads)),
        copies(make_copies(o)),
        lane(sets, o) {}

  const Source& source(const Ticket& t) const { return sets->of(t.split); }
  Random random(const Ticket& t, Purpose purpose) const {
    return Random(options.seed, t.epoch, t.index, purpose);
  }

  Outcome read(const Ticket& t, const TakeChunks& take, const Stop& stop) const {
    thread_local std::vector<std::span<const std::uint8_t>> pieces;
    pieces.clear();
    Outcome outcome = source(t).fetch(
        t.index, options.read,
        [&](std::size_t bytes, std::vector<iovec>& where) {
          return spread_out(take(bytes), bytes, where, pieces);
        },
        stop);
    return within_pixels(std::move(outcome), pieces, options.decode.max_pixels);
  }

  void begin_read(const Ticket& t, Request&& request, const Stop& stop) const {
    source(t).completing()->begin(t.index, options.read,
                                  std::make_unique<ToChunks>(std::move(request), options.decode.max_pixels),
                                  stop);
  }

  void drop_reads() const {
    for (const Source* s : {sets->train.get(), sets->val.get()})
      if (const CompletingSource* completing = s ? s->completing() : nullptr) completing->drop_stopped();
  }

  Outcome decode(const Ticket& t, Pieces pieces, Slot& slot, const Stop& stop) {
    const DecodeOutcome outcome = decoders.with_one([&](JpegDecoder& decoder) {
      return decode_sample(decoder, pieces, t.split == Split::train, {options.seed, t.epoch, t.index},
                           options.decode, options.decode.thread_scratch, slot.place(t.place).data(),
                           [&] { return stop.requested(); });
    });
    if (std::holds_alternative<Stopped>(outcome)) return {};
    if (const Error* error = std::get_if<Error>(&outcome)) return Outcome::bad(*error);
    if (std::holds_alternative<NeedsScratch>(outcome)) return Outcome::big();
    slot.labels()[t.place] = source(t).label(t.index);
    return {};
  }

  Outcome augment(const Ticket& t, Slot& slot) {
    if (t.split != Split::train) return {};
    copies.with_one([&](Mapping& copy) {
      sluice::augment(slot.place(t.place).data(), out_size(options), options.augment,
                      {random(t, Purpose::augment), random(t, Purpose::erase)}, copy.bytes());
    });
    return {};
  }

  std::shared_ptr<const DataSets> sets;
  DataPathOptions options;
  Sampler sampler;
  Tools<JpegDecoder> decoders;
  Tools<Mapping> copies;  // the augment node runs on no more threads than decode
  Lane lane;
};

}  // namespace

Stages data_path(std::shared_ptr<const DataSets> sets, const Sequence& sequence,
                 const DataPathOptions& options) {
  const auto state = std::make_shared<State>(std::move(sets), sequence, options);
  Stages s;
  s.next = [state] { return state->sampler.next(); };
  for (const Source* source : {state->sets->train.get(), state->sets->val.get()}) {
    if (source && source->completing()) {
      s.begin_read = [state](const Ticket& t, Request&& request, const Stop& stop) {
        state->begin_read(t, std::move(request), stop);
      };
      s.drop_reads = [state] { state->drop_reads(); };
    } else if (source) {
      s.read = [state](const Ticket& t, const TakeChunks& take, const Stop& stop) {
        return state->read(t, take, stop);
      };
    }
  }
  s.completes = [state](const Ticket& t) { return state->source(t).completing() != nullptr; };
  s.decode = [state](const Ticket& t, Pieces pieces, Slot& slot, const Stop& stop) {
    return state->decode(t, pieces, slot, stop);
  };
  s.lane = [state](const Ticket& t, const std::optional<Error>& trouble, Slot& slot, const Stop& stop) {
    return state->lane.settle(t, trouble, slot, stop);
  };
  s.augment = [state](const Ticket& t, Slot& slot) { return state->augment(t, slot); };
  s.name = [state](const Ticket& t) { return state->source(t).name(t.index); };
  return s;
}

}  // namespace sluice
