// Descriptors 0, 1 and 2, which a process can be started without.
#pragma once

namespace sluice {

// Opens /dev/null on those of 0, 1 and 2 that are closed: the next file that is opened would take the lowest
// number, and what libraries write to "stderr" would go into it. False if that cannot be done. To be called
// before anything else is opened.
[[nodiscard]] bool fill_standard_descriptors();

}  // namespace sluice
