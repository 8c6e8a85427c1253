// TOML from a file or a word, bounded before it is parsed: the parser's tables are as deep as the text nests,
// and destroying a table takes stack for each level.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sluice {

// As toml::parse(), which throws toml::parse_error; text that nests too deep is one as well.
[[nodiscard]] toml::table parse_toml(std::string_view text);

// The whole of a file, or of what comes through a name such as /dev/stdin, /dev/fd/N or /proc/self/fd/N; more
// than 8 MiB are refused, and so is a FIFO, socket or device of any other name, which might never end. The
// cause alone is the error: stage, subject and hint are the caller's.
[[nodiscard]] Result<std::string> read_toml_file(const std::filesystem::path& file);

}  // namespace sluice
