// A machine that one plans for without being on it: a small TOML file (configs/machines).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "run/plan/machine.hpp"

namespace sluice {

struct PlanMachine {
  std::string name;  // empty: the one this runs on
  Machine host;
  unsigned gpus = 0;
  std::size_t gpu_memory = 0;  // of each, as CUDA counts it; 0: not known
  std::string gpu_name;
};

// Every problem is an error that names the key; unknown keys are refused. `name` is the file's, for errors.
[[nodiscard]] Result<PlanMachine> parse_machine(std::string_view text, const std::string& name);
[[nodiscard]] Result<PlanMachine> load_machine(const std::filesystem::path& file);

}  // namespace sluice
