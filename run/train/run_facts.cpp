#include "run/train/run_facts.hpp"

#include "run/config/step_options.hpp"

namespace sluice {

using nlohmann::json;

json shape_of(const RunFacts& o) {
  const RunShape& s = o.sequence.shape();
  json shape{{"arch", o.config.model.arch},
             {"classes", o.classes},
             {"train_images", s.train_images},
             {"val_images", s.val_images},
             {"batch", s.global_batch()},
             {"accumulate", s.accumulate},
             {"seed", s.seed}};
  for (const auto& [key, value] : task_of(o.config).facts) shape[key] = value;
  return shape;
}

Result<std::uint64_t> batch_after(const Position& position, const RunFacts& facts,
                                  const std::string& source) {
  const json now = shape_of(facts);
  for (const auto& [key, value] : now.items()) {
    const json then = position.shape.value(key, json());
    if (then != value)
      return Error{"resume", source, key + " was " + then.dump() + " and is now " + value.dump(),
                   "a run can only go on with the same network, data, batch (of all ranks), image size and "
                   "seed"};
  }
  const std::optional<std::uint64_t> at = facts.sequence.after(position.step, position.validated);
  if (!at)
    return Error{"resume", source,
                 "stands at step " + std::to_string(position.step) + ", past the end of this run",
                 "raise train.epochs or train.max_steps"};
  return *at;
}

}  // namespace sluice
