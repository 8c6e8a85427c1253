// The JSON header of a file of weights, which nobody vouches for: a few bytes of text can make a value that
// takes fifty, so that the number of values is bounded, not only the text.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice {

// Nothing but a JSON object of up to a million values, nested up to 64 deep; else a discarded value.
[[nodiscard]] nlohmann::json parse_header(std::string_view text);

}  // namespace sluice
