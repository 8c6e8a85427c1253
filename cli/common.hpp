// What commands have in common.
#pragma once

#include <optional>

#include "run/config/config.hpp"
#include "run/session/ending.hpp"

namespace sluice {

// The configuration, or nothing after its errors have been printed.
[[nodiscard]] std::optional<Config> load_or_complain(const ConfigArguments& arguments);
void complain(const Error& error);  // "sluice: ..." on stderr
// The exit code of a run, after its failure has been printed.
[[nodiscard]] int told(const Ending& ending);
// The exit code of a command that comes to its end with `code`: results that could not be written to stdout
// make a failure of success.
[[nodiscard]] int with_output_written(int code);

// Data of one's own (--set data.train=DIR) are not to be made, whatever a preset makes.
void use_own_data(ConfigArguments& arguments);

}  // namespace sluice
