// Threads that could not be ended: one stuck in a read of a dead mount, or inside a library that waits. What
// such a thread may still touch must never be taken down, and a return from main would take it down: a
// process that has left one behind leaves by _exit, which main alone decides (cli/leave).
#pragma once

namespace sluice {

void note_thread_left_behind();
[[nodiscard]] bool thread_left_behind();  // ever, in this process

}  // namespace sluice
