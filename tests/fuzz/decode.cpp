// The decode stage as a target for libFuzzer, and for the mutated files of tests/nodes/jpeg/fuzz_test.cpp.
// Nothing to check but that it comes back, stays inside its buffers (sanitizers), writes what it says, and
// does the same in a new decoder as in one that has seen all files before. With clang:
//   CXX=clang++ meson setup build-fuzz -Dtorch=disabled -Db_sanitize=address,undefined -Db_lundef=false
//   ninja -C build-fuzz tests/fuzz_decode && build-fuzz/tests/fuzz_decode -max_len=20000 FOLDER_OF_JPEGS
#include "tests/fuzz/decode.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/support/decode_options.hpp"
#include "tests/support/jpegs.hpp"

namespace sluice::test {

DecodeOutcome decode_input(std::span<const std::uint8_t> file) {
  static JpegDecoder decoder;  // one for all, as a decode thread has it
  std::uint64_t hash = file.size();
  for (const std::uint8_t byte : file) hash = (hash ^ byte) * 0x100000001B3;
  Random random(hash, 0, 0, Purpose::synth);
  const int out_size = random.below(2) ? 32 : 7;
  DecodeOptions options = test::decode_options(out_size, out_size + 4);
  options.max_scratch = options.thread_scratch = 4 << 20;
  options.fast = random.below(2) == 0;
  const bool train = random.below(2) == 0;
  const auto pieces = in_pieces(file, 1 + random.below(2000));
  // No more and no less than the output: sanitizers see a byte too many.
  std::vector<std::uint8_t> out(static_cast<std::size_t>(options.out * options.out * 3));
  const DecodeStreams streams(hash, 1, 0);
  std::vector<std::uint8_t> alone(out.size(), 1);
  const auto decode = [&](JpegDecoder& with, std::vector<std::uint8_t>& to) {
    return decode_sample(with, pieces, train, streams, options, options.thread_scratch, to.data());
  };
  DecodeOutcome outcome = decode(decoder, out);
  const Error* error = std::get_if<Error>(&outcome);
  if (error && error->cause.empty()) std::abort();
  JpegDecoder fresh;
  const DecodeOutcome again = decode(fresh, alone);
  if (again.index() != outcome.index()) std::abort();
  if (error && std::get<Error>(again).cause != error->cause) std::abort();
  if (std::holds_alternative<Done>(outcome) && out != alone) std::abort();
  return outcome;
}

}  // namespace sluice::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)sluice::test::decode_input({data, size});
  return 0;
}
