#include "run/config/step_options.hpp"

namespace sluice {

Task task_of(const Config& c) { return image_classification(c.data.image_size); }

StepOptions step_options(const Config& c, int classes, const std::string& device, unsigned threads) {
  StepOptions s;
  s.arch = c.model.arch;
  s.classes = classes;
  s.device = device;
  s.precision = c.model.precision;
  s.channels_last = c.model.channels_last;
  s.zero_init = c.model.zero_init;
  s.label_smoothing = c.train.label_smoothing;
  s.momentum = c.optim.momentum;
  s.weight_decay = c.optim.weight_decay;
  s.decay_all = c.optim.decay_all;
  s.nesterov = c.optim.nesterov;
  s.clip = c.optim.clip;
  s.ema = c.optim.ema;
  s.accumulate = static_cast<int>(c.train.accumulate);
  s.threads = static_cast<int>(threads);
  s.seed = static_cast<std::uint64_t>(c.train.seed);
  s.batch = static_cast<int>(c.train.batch);
  s.task = task_of(c);
  s.sync_bn = c.model.sync_bn;
  s.compile = c.model.compile;
  s.recompute = c.model.recompute;
  return s;
}

MixOptions mix_options(const Config& c) {
  return {c.augment.mixup, c.augment.cutmix, c.augment.mix, c.augment.mix_switch};
}

ScheduleOptions schedule_options(const Config& c, std::int64_t ranks) {
  ScheduleOptions s;
  s.kind = c.schedule.kind;
  s.interval = c.schedule.interval;
  s.lr = c.optim.lr;
  s.total_batch = c.train.batch * c.train.accumulate * ranks;
  s.base_batch = c.optim.base_batch;
  s.epochs = c.train.epochs;
  s.warmup_epochs = c.schedule.warmup_epochs;
  s.warmup_start = c.schedule.warmup_start;
  return s;
}

}  // namespace sluice
