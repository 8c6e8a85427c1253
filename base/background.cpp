#include "base/background.hpp"

#include <sched.h>

namespace sluice {

void work_in_background() {
  thread_local bool done = false;  // workers enter an arena often
  if (done) return;
  done = true;
  const sched_param none{};
  if (sched_getscheduler(0) == SCHED_OTHER)           // another one is somebody's choice
    (void)sched_setscheduler(0, SCHED_BATCH, &none);  // of this thread alone; needs no rights
}

}  // namespace sluice
