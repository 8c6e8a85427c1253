#include "cli/bench/cpu_parts.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace sluice {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

CpuParts cpu_parts(const std::vector<CpuRound>& rounds) {
  const auto of = [&](auto&& part) {
    std::vector<double> all;
    for (const CpuRound& r : rounds) all.push_back(part(r));
    return median(std::move(all));
  };
  return {of([](const CpuRound& r) { return r.whole; }), of([](const CpuRound& r) { return r.read; }),
          of([](const CpuRound& r) { return r.read_code - r.read; }),
          of([](const CpuRound& r) { return r.read_decode - r.read_code; }),
          of([](const CpuRound& r) { return r.whole - r.read_decode; })};
}

std::string part_text(double ms) { return ms <= 0 ? "within noise" : fmt::format("{:.3f}", ms); }

}  // namespace sluice
