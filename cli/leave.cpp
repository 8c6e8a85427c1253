#include "cli/leave.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/process/left_behind.hpp"
#include "cli/common.hpp"

namespace sluice {

int leave(int code) {
  code = with_output_written(code);
  if (!thread_left_behind()) return code;
  std::cerr.flush();
  std::fflush(stderr);
  _exit(code);
}

}  // namespace sluice
