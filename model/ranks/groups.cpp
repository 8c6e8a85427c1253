#include "model/ranks/groups.hpp"

#include <algorithm>
#include <cstdlib>

#include "model/ranks/impl.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#ifdef SLUICE_CUDA
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace sluice {
namespace {

using Devices = std::vector<std::shared_ptr<gloo::transport::Device>>;

// The host's own name may stand for an address that others cannot reach (127.0.1.1 in Debian's /etc/hosts):
// what leads to the store leads to the others, or else what leads to a rank elsewhere.
// Where all are on this host, nobody else need reach them.
std::string own_address(Ranks::Impl& it) {
  if (it.options.seat.all_on_this_host()) return "127.0.0.1";
  std::vector<std::string> all;
  for (const auto& bytes : it.store->multiGet(it.of_all("address/")))
    all.emplace_back(bytes.begin(), bytes.end());
  const std::string& own = all.at(static_cast<std::size_t>(it.options.seat.rank));
  const auto outside = std::ranges::find_if(all, [](const auto& a) { return !a.empty() && !is_loopback(a); });
  return is_loopback(own) && outside != all.end() ? local_address(*outside, it.options.seat.port) : own;
}

Devices gloo_devices(Ranks::Impl& it) {
  using Gloo = c10d::ProcessGroupGloo;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  if (names == nullptr || *names == '\0') return {Gloo::createDeviceForHostname(own_address(it))};
  Devices devices;
  const std::string list = names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    devices.push_back(Gloo::createDeviceForInterface(list.substr(at, end - at)));
    at = end + 1;
  }
  return devices;
}

c10::intrusive_ptr<c10d::Backend> gloo_group(Ranks::Impl& it, const std::string& name, const Devices& devices,
                                             int threads) {
  const auto options = c10d::ProcessGroupGloo::Options::create(it.options.timeout);
  options->devices = devices;
  options->threads = threads;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>(name, it.store),
                                                     it.options.seat.rank, it.options.seat.world, options);
}

}  // namespace

Status make_groups(Ranks::Impl& it) {
  using Group = c10d::ProcessGroup;
  const Seat& seat = it.options.seat;
  const auto before = connected_sockets();
  const Devices devices = gloo_devices(it);
  it.small = gloo_group(it, "small", devices, 1);
  it.group = c10::make_intrusive<Group>(it.store, seat.rank, seat.world);
  it.group->setBackend(at::kCPU, Group::GLOO, gloo_group(it, "large", devices, 2));
  it.group->setDefaultBackend(Group::GLOO);
#ifdef SLUICE_CUDA
  if (it.options.device != "cpu") {
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = it.options.timeout;
    it.group->setBackend(
        at::kCUDA, Group::NCCL,
        c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", it.store),
                                                    seat.rank, seat.world, options));
    it.group->setDefaultBackend(Group::NCCL);
  }
#endif
  it.sockets = without(connected_sockets(), before);
  return Done{};
}

void abort_groups([[maybe_unused]] Ranks::Impl& it) {
#ifdef SLUICE_CUDA
  if (it.options.device != "cpu") it.group->getBackend(at::kCUDA)->abort();
#endif
}

}  // namespace sluice
