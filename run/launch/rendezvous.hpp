// Whether ranks would find each other: the port that rank 0 listens on, and the way there from the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "run/launch/checklist.hpp"
#include "run/launch/seat.hpp"

namespace sluice {

enum class Reach { connected, refused, silent, no_such_name, no_route };

[[nodiscard]] Reach reach(const std::string& name, std::uint16_t port, std::chrono::milliseconds patience);

// What the environment says about ranks, tried out. Nothing is sent to a port that answers.
void look_at_rendezvous(Checklist& list, const Environment& environment,
                        std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace sluice
