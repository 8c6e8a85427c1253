// Configuration files as a target for libFuzzer, and for the mutants of tests/run/config/fuzz_test.cpp. What
// is refused is refused in lines that a terminal can show; what is taken comes back the same from the
// config.toml of its run. With clang:
//   CXX=clang++ meson setup build-fuzz -Dtorch=disabled -Db_sanitize=address,undefined -Db_lundef=false
//   ninja -C build-fuzz tests/fuzz_config && build-fuzz/tests/fuzz_config -max_len=20000 configs
#include "tests/fuzz/config.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "run/config/config.hpp"
#include "run/plan/machine_file.hpp"

namespace sluice::test {
namespace {

void demand(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", what, printable(text).c_str());
  std::abort();
}

void check(const Error& error) {
  const std::string text = error.text();
  demand(!error.cause.empty(), "an error without a cause", text);
  demand(printable(text) == text, "an error that a terminal would obey", text);
}

std::vector<std::string> parts(std::span<const std::uint8_t> input) {
  std::vector<std::string> found(1);
  for (const std::uint8_t byte : input)
    if (byte == 0x1E && found.size() < 6)
      found.emplace_back();
    else
      found.back() += static_cast<char>(byte);
  return found;
}

}  // namespace

bool config_input(std::span<const std::uint8_t> input) {
  const std::vector<std::string> given = parts(input);
  const Loaded loaded = parse_config(given[0], "fuzz.toml", std::span(given).subspan(1));
  for (const Error& error : loaded.errors) check(error);
  const Result<PlanMachine> machine = parse_machine(given[0], "machine.toml");
  if (!machine) check(machine.error());
  const std::string text = to_toml(loaded.config);
  demand(printable_lines(text) == text, "a configuration that a terminal would obey", text);
  if (!loaded.errors.empty()) return false;
  const Loaded again = parse_config(text, "again.toml", {});
  for (const Error& error : again.errors) demand(false, "its own text is refused", error.text());
  demand(to_toml(again.config) == text, "its own text means something else", text);
  return true;
}

}  // namespace sluice::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)sluice::test::config_input({data, size});
  return 0;
}
