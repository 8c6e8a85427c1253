#include "base/process/descriptors.hpp"

#include <fcntl.h>
#include <initializer_list>

namespace sluice {

bool fill_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // Who closes stdout or stderr does not want what goes there: it is dropped, and that is no failure. Not
    // O_CLOEXEC: ranks and other children inherit them.
    if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) return false;  // it takes the lowest number
  }
  return true;
}

}  // namespace sluice
