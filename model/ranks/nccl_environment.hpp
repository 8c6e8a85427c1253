// What NCCL and torch's use of it can be told by the environment alone.
#pragma once

#include "model/ranks/seat.hpp"

namespace sluice {

// What the user has set stays. Before the process has a second thread: whoever reads the environment at the
// same time could read what is being freed.
void set_nccl_environment(const Seat& seat);

}  // namespace sluice
