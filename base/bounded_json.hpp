// JSON that nobody vouches for: the header of a file of weights, a line of records. A few bytes of text can
// make a value that takes fifty, so that the number of values is bounded, not only the text; and so is their
// depth, since a copy of a value calls itself for each level.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice {

// Nothing but a JSON object of up to a million values, nested up to 64 deep; else a discarded value.
[[nodiscard]] nlohmann::json parse_object(std::string_view text);

}  // namespace sluice
