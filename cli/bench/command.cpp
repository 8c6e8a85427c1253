#include "cli/bench/benches.hpp"
#include "cli/commands.hpp"

namespace sluice {

Run add_bench(Options& to) {
  to.needs_command();
  to.command({"step", "The training step, on a batch in memory: no data is read", add_bench_step});
  to.command({"data", "The data path against a bare full decode of the same files; needs no device",
              add_bench_data});
  to.command({"feed", "The data path into a consumer of a given speed; needs no device", add_bench_feed});
  return {};
}

}  // namespace sluice
