// Which libraries the program runs with, for logs and `sluice --version`.
#pragma once

#include <string>

namespace sluice {

struct Versions {
  std::string torch;
  std::string cuda;  // the runtime's; empty in a build without CUDA
  std::string nccl;  // likewise
  int threads = 0;   // that torch computes with on the CPU, from the calling thread
};

[[nodiscard]] Versions versions();
[[nodiscard]] std::string version_text();  // all of them and the program's own, in a line

}  // namespace sluice
