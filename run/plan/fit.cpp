#include "run/plan/fit.hpp"

#include <algorithm>

#include "base/available_memory.hpp"
#include "model/device/device.hpp"
#include "run/plan/plan.hpp"

namespace sluice {

Status fits_here(const Config& config, const std::string& device, const PlanData& data, const Seat& seat) {
  PlanRequest r;
  r.config = config;
  r.device = device;
  r.data = data;
  r.machine.host = this_machine();
  r.devices = static_cast<unsigned>(seat.local_world);
  r.machine.host.memory += r.devices * own_memory();  // the ranks of this host are alike
  r.nodes = static_cast<unsigned>(std::max(seat.world / seat.local_world, 1));
  if (device == "cuda")
    if (const auto gpu = open_device(device, seat.local_rank); gpu) {
      r.machine.gpus = r.devices;
      r.machine.gpu_memory = (*gpu)->memory().total;
    }
  return within_memory(make_plan(r), seat.local_rank == 0);
}

Status fits_before_synth(const Config& config, const std::string& device, const Seat& seat) {
  namespace fs = std::filesystem;
  if (!config.data.synth || (fs::exists(config.data.train) && fs::exists(config.data.val))) return Done{};
  return fits_here(config, device, assumed_data(config), seat);
}

}  // namespace sluice
