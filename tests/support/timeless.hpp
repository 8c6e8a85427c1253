// What of a record depends on the clock.
#pragma once

#include <nlohmann/json.hpp>

namespace sluice::test {

inline void forget_clock(nlohmann::json& record) {
  for (const char* key : {"step_ms", "images_per_s", "data_wait", "peak_ledger_bytes", "diagnosis"})
    record.erase(key);
}

}  // namespace sluice::test
