// A file of whole lines: no write, failed or cut short, leaves a torn one behind for the next reader.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/files/append.hpp"
#include "base/result.hpp"

namespace sluice {

// Where lines go; the end of line is added by the sink.
using LineSink = std::function<Status(std::string_view line)>;

// To append to `path`, made if there is none. A torn last line (the program was killed while writing) is cut
// off.
[[nodiscard]] Result<std::shared_ptr<AppendFile>> open_lines(const std::string& path);
[[nodiscard]] LineSink lines_into(std::shared_ptr<AppendFile> file);

// Both at once, for whoever never has to wait for the disk.
[[nodiscard]] Result<LineSink> append_to(const std::string& path);

}  // namespace sluice
