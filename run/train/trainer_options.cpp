#include <utility>

#include "run/config/step_options.hpp"
#include "run/train/setup.hpp"

namespace sluice {

TrainerOptions trainer_options(TrainSetup& p) {
  const auto network = [facts = p.run, ranks = p.ranks](std::function<void(const std::string&)> note) {
    StepOptions options = step_options(facts.config, facts.classes, facts.device, facts.torch_threads);
    options.ranks = ranks;
    options.device_index = facts.seat.local_rank;
    options.note = std::move(note);
    return make_network(options);
  };
  Exchange exchange;
  if (p.ranks)
    exchange = [ranks = p.ranks](std::span<const std::int64_t> mine) { return ranks->exchange(mine); };
  return {.facts = p.run,
          .start = std::exchange(p.start.point, {}),
          .network = network,
          .exchange = std::move(exchange)};
}

}  // namespace sluice
