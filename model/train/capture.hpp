// Whether a step is queued piece by piece or replayed in one go from a recording. Only whole batches of the
// one shape are recorded, after some steps as usual in which libraries choose their algorithms and take their
// memory. Where recording fails, the run goes on without, says so once and never tries again. Free of torch.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "model/device/device.hpp"

namespace sluice {

// Why a step cannot be recorded, whatever it holds; empty if it can.
[[nodiscard]] std::string why_no_capture(const std::string& device, bool alone, int accumulate,
                                         bool channels_last);

class Capture {
 public:
  static constexpr int warm_up = 3;  // steps, as torch recommends

  using Note = std::function<void(const std::string&)>;
  Capture(std::shared_ptr<Device> device, int images, int size, Note note);

  // Runs one step. `work` queues all of it, from and to memory that is the same each time, and leaves nothing
  // else behind on the host: in a replay it is not called.
  Status run(int images, int size, const std::function<Status()>& work);

 private:
  std::shared_ptr<Device> device_;
  int images_, size_;
  Note note_;
  int warm_ = 0;
  bool given_up_ = false;
  std::unique_ptr<Device::Captured> captured_;
};

}  // namespace sluice
