#include "model/ranks/nccl_environment.hpp"

#include <cstdlib>

namespace sluice {

void set_nccl_environment(const Seat& seat) {
  if (seat.alone()) return;
  // Torch would end the process when a rank is lost: here it is the heartbeat that says who, and rank 0 has
  // figures to write.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", /*overwrite=*/0);
  setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
  // NCCL's own sockets, like Gloo's: loopback alone where all are on this host.
  if (seat.all_on_this_host()) setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
}

}  // namespace sluice
