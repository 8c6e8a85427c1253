// What Ranks holds of torch; for model/ranks/ranks*.cpp and model/device/parallel.cpp alone.
#pragma once

#include <atomic>
#include <map>

#include "model/ranks/heartbeat.hpp"
#include "model/ranks/ranks.hpp"
#include "model/ranks/sockets.hpp"
#include "pch/torch.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace sluice {

struct Ranks::Impl {
  // True once all keys are there; false after the deadline, or when somebody is known to be gone.
  bool await(const std::vector<std::string>& keys, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] std::vector<std::string> of_all(const std::string& prefix) const;  // prefix + each rank
  [[nodiscard]] bool keeps_store() const { return options.seat.first() && !options.seat.store_elsewhere; }

  RanksOptions options;
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<std::string> hosts;
  c10::intrusive_ptr<c10d::ProcessGroup> group;  // of weights, gradients and sums; used by one thread
  c10::intrusive_ptr<c10d::Backend> small;       // of exchange: it must not queue behind gradients
  std::vector<Socket> sockets;                   // of both, where they are Gloo's
  std::vector<Socket> store_sockets;             // a store that is cut off answers nothing, not even an end
  std::unique_ptr<Heartbeat> heartbeat;
  at::Tensor travelling;  // of the exchange under way
  c10::intrusive_ptr<c10d::Work> exchange;
  std::map<std::string, int> meetings;  // by name, how often
  std::atomic<bool> left = false, aborted = false;
};

}  // namespace sluice
