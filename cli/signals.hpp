// SIGINT and SIGTERM: the first is noted, for the run to end in good order; a second one ends the process at
// once.
#pragma once

namespace sluice {

void catch_signals();
[[nodiscard]] int caught_signal();  // 0: none so far

}  // namespace sluice
