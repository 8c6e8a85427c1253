// Doctor's words on what this process may use of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "run/launch/checklist.hpp"
#include "run/plan/machine.hpp"

namespace sluice {

struct ProcessLimits {
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  std::uint64_t locked = unlimited;  // bytes
  std::uint64_t files = unlimited;   // open at once
  std::uint64_t address_space = unlimited;
  std::string huge_pages;  // the kernel's setting, such as "always [madvise] never"; empty: not told
};

[[nodiscard]] ProcessLimits this_process();

void look_at_machine(Checklist& list, const Machine& machine, const ProcessLimits& limits);

}  // namespace sluice
