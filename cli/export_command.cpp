#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "model/weights/weights_file.hpp"

namespace sluice {

int export_command(const std::string& checkpoint, const std::string& output, bool averaged) {
  const Result<Snapshot> read = read_checkpoint(checkpoint);
  if (!read) {
    complain(read.error());
    return exit_usage;
  }
  if (const Status possible = can_write_weights(*read, averaged, output); !possible) {
    complain(possible.error());
    return exit_usage;
  }
  if (const Status written = write_weights(*read, averaged, output); !written) {
    complain(written.error());
    return exit_failed;
  }
  const auto tensors = std::ranges::count_if(
      read->tensors, [](const StoredTensor& tensor) { return tensor.name.starts_with("model."); });
  std::cout << printable(output) << ": " << printable(read->arch) << (averaged ? ", averaged weights" : "")
            << ", " << read->classes << " classes, " << tensors << " tensors, "
            << std::filesystem::file_size(output) << " bytes\n";
  return exit_done;
}

}  // namespace sluice
