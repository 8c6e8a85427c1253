// Foreign text (file names, keys, tensor names, what peers say) made fit for a terminal, a log line or a
// drawing: control characters, line ends, bytes that are not UTF-8 and what turns the direction of writing
// become visible escapes, such as \n, \x1b, \u{202e}; all other text stays as it is. Doing it twice changes
// nothing, so it is done where foreign text is quoted, and once more where text leaves the program.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// For a part of a line: names, values, words.
[[nodiscard]] std::string printable(std::string_view text);

// For text of our own that may have several lines (a table, a list): its line ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace sluice
