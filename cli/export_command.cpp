#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "model/weights/weights_file.hpp"

namespace sluice {

static int export_command(const std::string& checkpoint, const std::string& output, bool averaged) {
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

Run add_export(Options& to) {
  struct Asked {
    std::string checkpoint, output;
    bool averaged = false;
  };
  const auto asked = std::make_shared<Asked>();
  to.option("checkpoint", &asked->checkpoint, "Checkpoint file (.ckpt)").required();
  to.option("-o,--output", &asked->output, "File to write: .safetensors, .pt or .pth").required();
  to.flag("--ema", asked->averaged, "The averaged weights (optim.ema) instead of the trained ones");
  return [asked] { return export_command(asked->checkpoint, asked->output, asked->averaged); };
}

}  // namespace sluice
