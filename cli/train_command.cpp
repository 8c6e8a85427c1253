#include <iostream>

#include "base/process/left_behind.hpp"
#include "base/thread_limit.hpp"
#include "cli/commands.hpp"
#include "cli/train/run.hpp"
#include "model/ranks/nccl_environment.hpp"
#include "run/launch/launch.hpp"
#include "run/launch/signals.hpp"

namespace sluice {
namespace {

struct TrainArguments {
  ConfigArguments config;
  std::string resume;
  LaunchArguments launch;
  std::vector<std::string> words;  // the whole command line, for ranks that are started
};

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// This process as one rank, or alone.
int train(const Config& config, const ConfigArguments& arguments, const std::string& resume,
          const Seat& seat) {
  const auto refuse = [](const Error& error) {
    complain(error);
    return exit_usage;
  };
  set_nccl_environment(seat);  // no other thread so far
  const Result<std::string> device = resolve_device(config.model.device);
  if (!device) return refuse(device.error());
  std::shared_ptr<Ranks> ranks;
  if (!seat.alone()) {
    if (const std::string warning = trust_warning(seat); seat.first() && !warning.empty())
      std::cerr << "sluice: warning: " << warning << "\n";
    Result<std::shared_ptr<Ranks>> joined =
        Ranks::join({seat, *device, in_milliseconds(config.dist.timeout),
                     in_milliseconds(config.dist.heartbeat), [] { return caught_signal() != 0; }});
    if (!joined) {
      note_thread_left_behind();  // one may be in torch still
      return refuse(joined.error());
    }
    ranks = std::move(*joined);
  }
  RankWatch watch(ranks, complain);
  try {
    Result<TrainSetup> setup = set_up_training(config, arguments, resume, *device, seat, ranks);
    if (!setup) {
      complain(setup.error());
      watch.failed(setup.error());
      return exit_usage;
    }
    return run_training(*setup, watch);
  } catch (const std::exception& error) {
    const Error told = as_error("train", error);
    watch.release();
    complain(told);
    watch.failed(told);
    return exit_failed;
  }
}

}  // namespace

static int train_command(const ConfigArguments& arguments, const TrainArguments& asked) {
  heed_questions();
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Environment environment = this_environment();
  const bool launched = follow_launcher(environment);
  Result<std::optional<Seat>> seat = seat_from(environment);
  if (seat && *seat && !launched && (asked.launch.devices || asked.launch.nodes || asked.launch.node_rank))
    seat = Error{"launch", "RANK", "is set: this process is one rank already, and starts no others",
                 "leave out --devices, --nodes and --node-rank"};
  if (!seat) {
    complain(seat.error());
    return exit_usage;
  }
  if (*seat && !launched) (*seat)->listener = -1;  // some other process's number
  if (*seat) return train(*config, arguments, asked.resume, **seat);
  const Result<Hosts> hosts = hosts_from(environment, asked.launch);
  if (!hosts) {
    complain(hosts.error());
    return exit_usage;
  }
  if (hosts->world() == 1) return train(*config, arguments, asked.resume, {});
  return launch({*hosts, asked.words});
}

Run add_train(Options& to) {
  const auto asked = std::make_shared<TrainArguments>();
  asked->words.assign(to.words().begin(), to.words().end());
  to.config(asked->config).required();
  to.option("--resume", &asked->resume, "Go on from a checkpoint: a file, or auto for the newest sound one")
      .type("auto|FILE");
  to.option("--devices", &asked->launch.devices, "Ranks to start on this host, one for each device");
  to.option("--nodes", &asked->launch.nodes, "Hosts; MASTER_ADDR names the one with node rank 0");
  to.option("--node-rank", &asked->launch.node_rank, "Which of the hosts this one is, from 0");
  return [asked] { return train_command(asked->config, *asked); };
}

}  // namespace sluice
