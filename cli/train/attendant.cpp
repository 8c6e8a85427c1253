#include "cli/train/attendant.hpp"

#include "base/files/fresh.hpp"
#include "graph/figures/dot.hpp"
#include "model/device/cpu_memory.hpp"

namespace sluice {

Attendant::Attendant(Session& session, RankWatch& ranks, const StepStage& step, const TrainSetup& setup,
                     const PartDiagnosis& diagnosis)
    : session_(session),
      ranks_(ranks),
      step_(step),
      seat_(setup.run.seat),
      folder_(setup.run.folder),
      diagnosis_(diagnosis),
      memory_{setup.plan.memory.total(), [&ledger = session.pipeline().ledger()] {
                const KeptMemory::Usage tensors = cpu_memory();
                return MemoryFigures{resident_bytes(), ledger.held(), tensors.in_use + tensors.kept};
              }} {}

void Attendant::signalled(int signal) {
  told_ = true;
  idle_since_ = now_ns();
  if (seat_.alone()) session_.stop().request();
  if (seat_.first())
    session_.log().message(Level::info,
                           signal_name(signal) +
                               (seat_.alone() ? ": ending after this step" : ": ending within two batches") +
                               " and saving last.ckpt; once more ends at once");
}

void Attendant::look() {
  answer();
  if (step_.busy() || step_.begun() != begun_) {
    begun_ = step_.begun();
    idle_since_ = now_ns();
  }
  if (told_ && starving()) {
    told_ = false;
    session_.stop().fail({"ranks", "", "told to end, and no batch came", "go on with --resume auto"});
  }
  if (const std::optional<Error> failure = session_.stop().failure()) ranks_.failed(*failure);
  if (const std::optional<std::string> warning = memory_.look(now_ns()))
    session_.log().message(Level::warning, *warning);
  if (now_ns() - drawn_ > 2'000'000'000) draw(session_.pipeline().figures());
}

void Attendant::answer() {
  if (asked_by_signal()) session_.log().message(Level::info, diagnosis_.so_far().line);
}

// Ranks agree on a stop from batch to batch. Where none comes, because a read takes long and the others may
// be gone, there is no time to wait for it: what ends processes does not wait either.
bool Attendant::starving() const {
  return !seat_.alone() && now_ns() - idle_since_ > 10'000'000'000 && !session_.stop().failure();
}

void Attendant::draw(const GraphFigures& figures) {
  if (!seat_.first()) return;
  drawn_ = now_ns();
  // A drawing that fails must not end a run.
  (void)swap_text(folder_ / "graph.dot", folder_ / ".graph.dot.new", to_dot(figures, folder_.string()));
}

}  // namespace sluice
