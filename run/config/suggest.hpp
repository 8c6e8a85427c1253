// What somebody may have meant who wrote a key or a section that does not exist.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

[[nodiscard]] bool is_section(std::string_view name);
[[nodiscard]] std::string keys_in(std::string_view section);  // "train, val, synth, ..."
// Hints: the nearest that exists, else all that there are.
[[nodiscard]] std::string suggest_key(const std::string& name);
[[nodiscard]] std::string suggest_section(const std::string& name);

}  // namespace sluice
