// The decode stage as a target for libFuzzer, and for the mutated files of tests/nodes/fuzz_test.cpp. Nothing
// to check but that it comes back, stays inside its buffers (sanitizers) and writes what it says. With clang:
//   CXX=clang++ meson setup build-fuzz -Dtorch=disabled -Db_sanitize=address,undefined -Db_lundef=false
//   ninja -C build-fuzz tests/fuzz_decode && build-fuzz/tests/fuzz_decode -max_len=20000 FOLDER_OF_JPEGS
#include "tests/fuzz/decode.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/support/jpegs.hpp"

namespace sluice::test {

DecodeOutcome decode_input(std::span<const std::uint8_t> file) {
  static JpegDecoder decoder;  // one for all, as a decode thread has it
  std::uint64_t hash = file.size();
  for (const std::uint8_t byte : file) hash = (hash ^ byte) * 0x100000001B3;
  Random random(hash, 0, 0, Purpose::synth);
  DecodeOptions options;
  options.out = random.below(2) ? 32 : 7;
  options.resize = options.out + 4;
  options.max_scratch = options.thread_scratch = 4 << 20;
  options.fast = random.below(2) == 0;
  const bool train = random.below(2) == 0;
  const auto pieces = in_pieces(file, 1 + random.below(2000));
  // No more and no less than the output: sanitizers see a byte too many.
  std::vector<std::uint8_t> out(static_cast<std::size_t>(options.out * options.out * 3));
  const DecodeStreams streams(hash, 1, 0);
  DecodeOutcome outcome =
      decode_sample(decoder, pieces, train, streams, options, options.thread_scratch, out.data());
  if (const Error* error = std::get_if<Error>(&outcome); error && error->cause.empty()) std::abort();
  return outcome;
}

}  // namespace sluice::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)sluice::test::decode_input({data, size});
  return 0;
}
