// SIGINT, SIGTERM and SIGHUP: the first is noted, for the run to end in good order; a second one ends the
// process at once. SIGUSR1: asks what the run is held up by.
#pragma once

#include <string>

namespace sluice {

void catch_signals();                  // all of these, but no SIGHUP that is ignored already (nohup)
void heed_questions();                 // SIGUSR1 alone, from the program's start: it would end it otherwise
[[nodiscard]] int caught_signal();     // 0: none so far
[[nodiscard]] bool asked_by_signal();  // SIGUSR1 has come since the last call
[[nodiscard]] bool is_ignored(int signal);
[[nodiscard]] std::string signal_name(int signal);  // "SIGTERM"

}  // namespace sluice
