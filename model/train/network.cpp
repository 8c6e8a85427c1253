#include "model/train/network.hpp"

namespace sluice {

Result<Network> make_network(const StepOptions& options) {
  Result<Step> made = Step::create(options);
  if (!made) return made.error();
  const auto step = std::make_shared<Step>(std::move(*made));
  return Network{.train = [step](DeviceBatch&& batch,
                                 const TrainStep& how) { return step->train(std::move(batch), how); },
                 .eval = [step](DeviceBatch&& batch) { return step->eval(std::move(batch)); },
                 .read_back = [step] { return step->read_back(); },
                 .snapshot = [step](Snapshot& into) { return step->snapshot(into); },
                 .restore = [step](const Snapshot& snapshot) { return step->restore(snapshot); },
                 .start_from = [step](const Snapshot& weights) { return step->start_from(weights); },
                 .share = [step] { return step->share(); },
                 .intact = [step] { return step->intact(); }};
}

}  // namespace sluice
