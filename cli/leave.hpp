// The last thing that main does.
#pragma once

namespace sluice {

// Writes out what was printed and gives the exit code, which `code` is unless results were lost. Does not
// come back where a thread was left behind, as by a read that never ended (base/process/left_behind): then it
// ends the process by _exit, for main's return would destroy what that thread may still use. No other
// code calls _exit because of a stuck thread.
[[nodiscard]] int leave(int code);

}  // namespace sluice
