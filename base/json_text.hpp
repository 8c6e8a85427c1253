// JSON in one line of printable ASCII, whatever text is in it: a terminal obeys nothing of it, and names come
// back as they were. Bytes that are not UTF-8, which JSON cannot say, become U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice {

[[nodiscard]] std::string json_text(const auto& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice
