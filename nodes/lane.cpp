#include "nodes/lane.hpp"

#include "graph/figures/nodes.hpp"
#include "model/task.hpp"

namespace sluice {

Lane::Lane(std::shared_ptr<const DataSets> sets, const DataPathOptions& options)
    : sets_(std::move(sets)), options_(options), file_(options.read.max_file) {}

Outcome Lane::load(const Ticket& t, std::uint64_t index, Slot& slot, const Stop& stop) {
  const Source& source = sets_->of(t.split);
  std::size_t size = 0;
  Outcome outcome = source.fetch(
      index, options_.read,
      [&](std::size_t bytes, std::vector<iovec>& where) {
        where.push_back({file_.data(), size = bytes});
        return true;
      },
      stop);
  if (outcome.kind != Outcome::Kind::done) return outcome;
  const std::span<const std::uint8_t> piece(file_.data(), size);
  const DecodeOutcome decoded = decode_sample(
      decoder_, {&piece, 1}, t.split == Split::train, {options_.seed, t.epoch, t.index}, options_.decode,
      options_.decode.max_scratch, slot.place(t.place).data(), [&] { return stop.requested(); });
  if (std::holds_alternative<Stopped>(decoded)) return outcome;
  if (const Error* error = std::get_if<Error>(&decoded)) {
    outcome = Outcome::bad(*error);
    outcome.error.subject = source.name(index);
    return outcome;
  }
  if (const NeedsScratch* more = std::get_if<NeedsScratch>(&decoded))
    return Outcome::fatal({name_of(NodeId::lane), source.name(index),
                           "needs " + std::to_string(more->bytes) + " bytes of scratch past its own limit",
                           ""});
  slot.labels()[t.place] = source.label(index);
  return outcome;
}

Outcome Lane::settle(const Ticket& t, const std::optional<Error>& trouble, Slot& slot, const Stop& stop) {
  Outcome outcome = trouble ? Outcome::bad(*trouble) : load(t, t.index, slot, stop);
  const Source& source = sets_->of(t.split);
  std::vector<Bad> bad;
  if (outcome.kind == Outcome::Kind::bad && t.split == Split::val) {
    slot.mark_bad({t.place, source.name(t.index), outcome.error.cause, ""});
    slot.labels()[t.place] = no_class;
    const auto pixels = slot.place(t.place);
    std::fill(pixels.begin(), pixels.end(), std::uint8_t{0});
    outcome = {};
  }
  Random draw(options_.seed, t.epoch, t.index, Purpose::replace);
  std::uint64_t index = t.index;
  for (int k = 1; outcome.kind == Outcome::Kind::bad && k <= candidates && !stop.requested(); ++k) {
    bad.push_back({t.place, source.name(index), outcome.error.cause, ""});
    index = draw.below(static_cast<std::uint32_t>(source.size()));
    outcome = load(t, index, slot, stop);
  }
  if (outcome.kind == Outcome::Kind::bad && stop.requested()) outcome = {};  // nobody will look at it
  if (outcome.kind == Outcome::Kind::bad)
    outcome = Outcome::fatal({name_of(NodeId::lane), source.name(t.index),
                              "cannot be used, and neither can " + std::to_string(candidates) +
                                  " replacements drawn for it; last: " + source.name(index) + ": " +
                                  outcome.error.cause,
                              "check the data set"});
  for (Bad& b : bad) {
    b.replacement = source.name(index);
    slot.mark_bad(std::move(b));
  }
  decoder_.release();  // above a thread's allotment: used once and freed
  file_.forget();
  return outcome;
}

}  // namespace sluice
