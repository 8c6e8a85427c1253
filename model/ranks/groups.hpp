// The connections between ranks: Gloo over TCP on the CPU, NCCL between GPUs.
#pragma once

#include "model/ranks/ranks.hpp"

namespace sluice {

Status make_groups(Ranks::Impl& ranks);  // may throw as torch does
void abort_groups(Ranks::Impl& ranks);   // what sockets do not reach: NCCL

}  // namespace sluice
