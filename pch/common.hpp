// What most files include, precompiled: reading these is most of the work of compiling a small one.
// (An include guard, not `#pragma once`: the compiler warns about that in a header it precompiles.)
#ifndef SLUICE_PCH_COMMON_HPP
#define SLUICE_PCH_COMMON_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#endif
