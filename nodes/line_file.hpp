// A file that grows by whole lines. Each line is handed to the system before append returns; a line that
// could not be written whole is taken back, so that a full disk never leaves a torn line behind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "graph/result.hpp"

namespace sluice {

// Where lines go; the end of line is added by the sink.
using LineSink = std::function<Status(std::string_view line)>;

// Appends to `path`, made if there is none. A torn last line (the program was killed while writing) is cut
// off.
[[nodiscard]] Result<LineSink> append_to(const std::string& path);

}  // namespace sluice
