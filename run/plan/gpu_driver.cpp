#include "run/plan/gpu_driver.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

namespace sluice {

std::optional<GpuDriver> gpu_driver(const std::string& root) {
  std::ifstream in(root + "/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  GpuDriver driver;
  static const std::regex number("\\b([0-9]{3,}\\.[0-9]+(\\.[0-9]+)?)\\b");
  if (std::smatch found; std::regex_search(line, found, number)) driver.version = found[1];
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/proc/driver/nvidia/gpus", none))
    driver.gpus += entry.is_directory();
  return driver;
}

int oldest_driver(const std::string& cuda) {
  switch (std::atoi(cuda.c_str())) {
    case 11:
      return 450;
    case 12:
      return 525;
    case 13:
      return 580;
    default:
      return 0;
  }
}

bool too_old(const std::string& driver, const std::string& cuda) {
  const int branch = std::atoi(driver.c_str());
  return branch > 0 && branch < oldest_driver(cuda);
}

}  // namespace sluice
