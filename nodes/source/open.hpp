// Where data come from, by what the configuration calls it: the one place that knows all kinds of sources.
#pragma once

#include <memory>
#include <string>

#include "nodes/source/folder.hpp"
#include "nodes/source/source.hpp"

namespace sluice {

// `where`: a folder of class folders. Lists its items; opens none of them.
[[nodiscard]] Result<std::shared_ptr<const Source>> open_source(const std::string& where,
                                                                const FolderOptions& options);

}  // namespace sluice
