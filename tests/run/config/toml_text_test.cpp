#include "run/config/toml_text.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "run/config/config.hpp"
#include "run/plan/machine_file.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using test::TemporaryFolder;

namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  while (times-- > 0) text += part;
  return text;
}

// What is wrong, or "".
std::string refusal(const Loaded& loaded) {
  std::string all;
  for (const Error& error : loaded.errors) all += error.text() + "\n";
  return all;
}
std::string refusal(const std::string& text, std::vector<std::string> sets = {}) {
  return refusal(parse_config(text, "c.toml", sets));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string sound = "[data]\ntrain = \"t\"\nval = \"v\"\n";

}  // namespace

TEST_CASE("toml text: keys fifty thousand deep are refused with their line, not with the stack") {
  const std::string dots = repeated("a.", 50'000) + "a";
  CHECK(has(refusal("\n" + dots + " = 1\n"), "c.toml:2:"));
  CHECK(has(refusal("\n" + dots + " = 1\n"), "too many dots"));
  CHECK(has(refusal("[" + dots + "]\n"), "too many dots"));
  CHECK(has(refusal("[[" + dots + "]]\n"), "too many dots"));
  CHECK(has(refusal(repeated("\"a\" . ", 50'000) + "a = 1\n"), "too many dots"));
  CHECK(has(refusal("x = {" + dots + " = 1}\n"), "too many dots"));
  CHECK(has(refusal("x = " + repeated("[", 50'000)), "too deep"));
  CHECK(has(refusal("x = " + repeated("{a = ", 50'000)), "too deep"));
  CHECK(has(refusal("x = " + repeated("{a.a.a.a.a.a = [", 50'000)), "too deep"));
  for (const std::string& word : {"data.exclude=" + repeated("[", 50'000) + repeated("]", 50'000),
                                  "data.exclude={" + dots + "=1}", "train.batch=1\n" + dots + "=1"})
    CHECK_FALSE(refusal(sound, {word}).empty());
  CHECK_FALSE(parse_machine(dots + " = 1", "m.toml"));
}

TEST_CASE("toml text: dots and brackets in strings, comments and numbers are none") {
  const std::string many = repeated("[.{", 200);
  CHECK(refusal(sound + "exclude = [\"a/" + many + "\", 'b/" + many + "'] # " + many + "\n").empty());
  CHECK(refusal(sound + "exclude = [\"a/\\\"" + many + "\", \"\"\"c/\\\"\"\n\"" + many + "\"\"\"\"\"]\n")
            .empty());
  CHECK(refusal(sound + "exclude = ['''d/''" + many + "\n''''']\n").empty());
  CHECK(refusal(sound + "[augment]\nscale = [0.5, 1.0]\n" + repeated("# a.b\n", 100)).empty());
  // A string that hides what follows from us must hide it from the parser too.
  CHECK(has(refusal("x = \"\"\"\"\"\"\n" + repeated("a.", 50'000) + "a = 1\n"), "too many dots"));
  CHECK(has(refusal("x = ''''''''\n" + repeated("a.", 50'000) + "a = 1\n"), "too many dots"));
}

TEST_CASE("toml text: a NUL byte in any text is refused where it stands") {
  CHECK(has(refusal("[data]\ntrain = \"t\\u0000x\"\nval = \"v\"\n"),
            "c.toml:2:9: data.train holds a NUL byte"));
  CHECK(has(refusal(sound + "exclude = [\"a/b\", \"c/\\u0000\"]\n"), "data.exclude holds a NUL byte"));
  CHECK(has(refusal(sound, {"log.dir=\"runs\\u0000x\""}), "log.dir holds a NUL byte"));
  CHECK(has(refusal(sound, {"log.name=\"n\\u0000x\""}), "remove the \\u0000"));
  CHECK(has(refusal(sound, {"log.name=a\xff"}), "is not UTF-8 (\"a\\xff\")"));
}

TEST_CASE("toml text: a configuration may come through a pipe, up to a limit") {
  const test::Watchdog watchdog("reading configurations");
  const TemporaryFolder folder;
  const auto piped = [&](const std::string& text, const char* names) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    std::thread writer([&] {
      for (std::size_t at = 0; at < text.size();) {
        const ssize_t put = write(ends[1], text.data() + at, text.size() - at);
        if (put <= 0) break;
        at += static_cast<std::size_t>(put);
      }
      close(ends[1]);
    });
    Loaded loaded = load_config(names + std::to_string(ends[0]));
    writer.join();
    close(ends[0]);
    return loaded;
  };
  const std::string large = sound + repeated("# more than a pipe holds\n", 10'000);
  for (const char* names : {"/dev/fd/", "/proc/self/fd/", "/dev/../dev/fd/"}) {
    CHECK(piped(large, names).errors.empty());
    CHECK(piped(sound, names).config.data.train == "t");
  }
  const Loaded endless = load_config("/dev/zero");
  REQUIRE(endless.errors.size() == 1);
  CHECK(has(endless.errors[0].text(), "/dev/zero: cannot be read: more than 8 MiB"));
  CHECK(has(load_config(folder.path()).errors[0].text(), "is a folder, not a file"));
}

TEST_CASE("toml text: a FIFO, a socket or a device among files is refused by name and never waited for") {
  const test::Watchdog watchdog("refusing configurations");
  const TemporaryFolder folder(std::filesystem::temp_directory_path());
  const TemporaryFolder shared("/dev/shm");  // below /dev, but anybody may write there
  for (const TemporaryFolder* place : {&folder, &shared}) {
    const std::string fifo = *place / "fifo.toml", link = *place / "link.toml", tty = *place / "tty.toml";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    std::filesystem::create_symlink("fifo.toml", link);
    std::filesystem::create_symlink("/dev/zero", tty);
    for (const std::string& name : {fifo, link}) {
      CHECK(has(refusal(load_config(name)), name + ": cannot be read: is a FIFO, not a file"));
      const Result<PlanMachine> machine = load_machine(name);
      REQUIRE_FALSE(machine);
      CHECK(machine.error().cause == "cannot be read: is a FIFO, not a file");
    }
    CHECK(has(refusal(load_config(tty)), "is a device, not a file"));
    // Also while somebody holds it open for writing, and never writes.
    const int held = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(held >= 0);
    CHECK(has(refusal(load_config(fifo)), "is a FIFO, not a file"));
    close(held);
  }
}

TEST_CASE("toml text: a FIFO that was made the input is read to its end, though its writer has left") {
  const test::Watchdog watchdog("reading what was left");
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int in = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC),
            out = open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(write(out, sound.data(), sound.size()) == static_cast<ssize_t>(sound.size()));
  close(out);
  CHECK(load_config("/dev/fd/" + std::to_string(in)).config.data.train == "t");
  close(in);
}
