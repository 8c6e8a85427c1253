// Trains a network on the formula's images for tests/interop/parity.py: train ARCH plain|nesterov FOLDER.
// Leaves a checkpoint for each step, with its loss.
#include <cstdio>
#include <filesystem>

#include "tests/support/parity.hpp"

using namespace sluice;

namespace {

Status run(const std::string& arch, bool nesterov, const std::filesystem::path& folder) {
  Result<Step> step = test::formula_step(arch, nesterov);
  if (!step) return step.error();
  Snapshot snapshot;
  for (int i = 0; i < test::parity::steps; ++i) {
    const Result<double> loss = test::formula_train(*step, i);
    if (!loss) return loss.error();
    snapshot.state["loss"] = *loss;
    if (Status done = step->snapshot(snapshot); !done) return done;
    const std::string name = "step" + std::to_string(i) + ".ckpt";
    if (Status done = write_checkpoint(snapshot, folder / name); !done) return done;
  }
  return Done{};
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return std::fputs("usage: train ARCH plain|nesterov FOLDER\n", stderr), 2;
  const Status done = run(words[1], std::string_view(words[2]) == "nesterov", words[3]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
