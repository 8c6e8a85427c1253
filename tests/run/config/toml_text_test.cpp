#include "run/config/toml_text.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "run/config/config.hpp"
#include "run/plan/machine_file.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using test::TemporaryFolder;

namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  while (times-- > 0) text += part;
  return text;
}

// What is wrong, or "".
std::string refusal(const std::string& text, std::vector<std::string> sets = {}) {
  std::string all;
  for (const Error& error : parse_config(text, "c.toml", sets).errors) all += error.text() + "\n";
  return all;
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
  const TemporaryFolder folder;
  const std::string fifo = folder / "pipe";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const auto piped = [&](const std::string& text) {
    std::thread writer([&] {
      const int fd = open(fifo.c_str(), O_WRONLY);
      for (std::size_t at = 0; at < text.size();) {
        const ssize_t put = write(fd, text.data() + at, text.size() - at);
        if (put <= 0) break;
        at += static_cast<std::size_t>(put);
      }
      close(fd);
    });
    Loaded loaded = load_config(fifo);
    writer.join();
    return loaded;
  };
  CHECK(piped(sound).errors.empty());
  CHECK(piped(sound).config.data.train == "t");
  const Loaded endless = load_config("/dev/zero");
  REQUIRE(endless.errors.size() == 1);
  CHECK(has(endless.errors[0].text(), "/dev/zero: cannot be read: more than 8 MiB"));
  CHECK(has(load_config(folder.path()).errors[0].text(), "Is a directory"));
}
