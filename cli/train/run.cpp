#include "cli/train/run.hpp"

#include "cli/common.hpp"
#include "cli/train/attendant.hpp"
#include "cli/train/log.hpp"
#include "model/device/device.hpp"
#include "run/config/step_options.hpp"

namespace sluice {
namespace {

// The heartbeat's thread may end the run, but not one that is gone.
struct Watched {
  RankWatch& ranks;
  Watched(RankWatch& r, Stop& stop) : ranks(r) { ranks.watch(stop); }
  ~Watched() { ranks.release(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
};

// What became of the run, of the last checkpoint, and of the other ranks.
Ending end_of(Ending ending, const TrainSetup& setup, const Trainer& trainer, const Status& saved,
              RankWatch& ranks) {
  if (!saved) ending.fail(saved.error());
  if (ending.failure) {
    ranks.failed(*ending.failure);
    return ending;
  }
  const std::chrono::duration<double> at_most(setup.run.config.dist.timeout);
  if (const auto lost = ranks.leave(std::chrono::duration_cast<std::chrono::milliseconds>(at_most)))
    ending.fail(*lost);
  if (trainer.stopped_early() || ending.kind == Ending::Kind::stopped)
    ending.stopped_by(setup.run.seat.alone() ? caught_signal() : trainer.agreed_stop());
  return ending;
}

// The last record and messages.
void tell_end(const TrainSetup& setup, const Ending& ending, const Trainer& trainer, Log& log) {
  const Diagnosis diagnosis = diagnose(ending.figures);
  const bool finished = ending.well(), first = setup.run.seat.first();
  if (first)
    log.put({"end",
             trainer.epoch(),
             trainer.steps(),
             {{"peak_ledger_bytes", static_cast<double>(ending.figures.ledger_peak)}},
             {{"reason", ending.failure ? ending.failure->text()
                         : finished     ? "finished"
                                        : "stopped"},
              {"diagnosis", diagnosis.line}}});
  if (ending.failure) log.message(Level::error, ending.failure->text());
  if (ending.abandoned) log.message(Level::warning, "a read never came back: its thread is left behind");
  const bool nothing_left = setup.plan.pipeline.first_batch == setup.plan.pipeline.batches;
  if (finished && first)
    log.message(Level::info,
                nothing_left ? "this run was finished already; raise train.epochs or train.max_steps to go on"
                             : diagnosis.line);
}

}  // namespace

int run_training(TrainSetup& p, RankWatch& ranks) {
  const Config& config = p.run.config;
  const bool first = p.run.seat.first();
  const auto refuse = [&](const Error& error) {
    const int code = told(Ending::refused(error));
    ranks.failed(error);
    return code;
  };
  std::optional<Session> session;
  std::optional<Trainer> trainer;
  StepStage step([&](std::uint64_t number, OnDevice& batch, Nanoseconds waited) {
    return trainer->step(number, batch, waited);
  });
  Status saved = Done{};
  Stages stages = data_path(p.sets, p.run.sequence, p.plan.data);
  stages.step_begin = [&] {
    const StepStage::Busy busy(step);
    return trainer->begin();
  };
  stages.step = [&](Batch& batch) { return step(batch); };
  stages.step_over = [&] {
    const StepStage::Busy busy(step);
    saved = trainer->over();
  };
  stages.tell = [&](const std::string& line) {
    if (first) session->log().message(Level::info, line);
  };
  stages.records = [&] { return static_cast<double>(session->log().waiting()); };
  session.emplace(
      p.plan.pipeline, std::move(stages),
      std::make_unique<DeviceFeed>(
          [device = p.run.device, index = p.run.seat.local_rank] { return open_device(device, index); },
          config.train.batch, task_of(config).sample));
  Result<LogOptions> files = log_options(p.run, p.start.point.position, p.plan.pipeline.log_queue);
  if (!files) return refuse(files.error());
  Log& log = session->open_log(std::move(*files));
  if (first)
    for (const std::string& line : describe(p)) log.message(Level::info, line);
  for (const std::string& line : p.start.warnings) log.message(Level::warning, line);
  trainer.emplace(trainer_options(p), log);
  Pipeline& pipeline = session->pipeline();
  trainer->connect(pipeline.log_stats(), pipeline.stop(), [&] { return pipeline.ledger().peak(); });
  if (Status ready = session->prepare(); !ready) return refuse(ready.error());
  PartDiagnosis diagnosis([&] { return pipeline.figures(); });
  trainer->diagnose_epochs([&] { return diagnosis.part_over().line; });
  trainer->watch_gpu(session->feed().gpu_figures());

  Attendant attendant(*session, ranks, step, p, diagnosis);
  attendant.draw(pipeline.figures());
  Ending ending;
  {
    const Watched watched(ranks, pipeline.stop());
    ending = session->run(
        {.tick = [&] { attendant.look(); }, .on_signal = [&](int signal) { attendant.signalled(signal); }});
    attendant.answer();
  }
  attendant.draw(ending.figures);
  const bool both = ending.failure && !saved;  // the run failed, and so did saving
  ending = end_of(std::move(ending), p, *trainer, saved, ranks);
  tell_end(p, ending, *trainer, log);
  if (both) log.message(Level::error, saved.error().text());
  const Status closed = log.close();
  if (ending.failure || closed) return ending.code();
  ending.fail(closed.error());
  return told(ending);
}

}  // namespace sluice
