#include "nodes/source/open.hpp"

namespace sluice {

Result<std::shared_ptr<const Source>> open_source(const std::string& where, const FolderOptions& options) {
  Result<ImageFolder> folder = ImageFolder::scan(where, options);
  if (!folder) return folder.error();
  return std::shared_ptr<const Source>(std::make_shared<ImageFolder>(std::move(*folder)));
}

}  // namespace sluice
