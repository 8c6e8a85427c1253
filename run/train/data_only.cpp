#include "run/train/data_only.hpp"

namespace sluice {

Result<DataOnly> training_data(Config config) {
  FolderOptions folder = folder_options(config);
  folder.per_class = static_cast<std::size_t>(config.data.per_class);
  Result<ImageFolder> train = ImageFolder::scan(config.data.train.string(), folder);
  if (!train) return train.error();
  const Machine machine = this_machine();
  if (!config.pipeline.decode_threads) config.pipeline.decode_threads = machine.cpus;
  Result<RunPlan> plan = plan_run(config, machine, "cuda", train->index_bytes());
  if (!plan) return plan.error();
  const std::uint64_t images = train->size();
  RunShape shape;
  shape.batch = plan->pipeline.batch;
  shape.train_images = images * ((shape.batch + images - 1) / images);
  shape.epochs = 1'000'000;
  shape.seed = static_cast<std::uint64_t>(config.train.seed);
  shape.validate = false;
  Result<Sequence> sequence = Sequence::make(shape);
  if (!sequence) return sequence.error();
  plan->pipeline.batches = sequence->batches();
  auto sets =
      std::make_shared<const DataSets>(DataSets{std::make_shared<ImageFolder>(std::move(*train)), {}});
  return DataOnly{std::move(config), std::move(*plan), std::move(sets), *sequence, images};
}

Stages DataOnly::stages() const {
  Stages all = data_path(sets, sequence, plan.data);
  all.next = [images = images, inner = all.next] {
    std::optional<Ticket> ticket = inner();
    if (ticket) ticket->index %= images;
    return ticket;
  };
  return all;
}

}  // namespace sluice
