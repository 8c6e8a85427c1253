// Names, keys and files that others made: nothing of them drives the terminal, forges a line or holds the
// program up.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/descriptor.hpp"
#include "base/printable.hpp"
#include "tests/program/workshop.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

const std::string evil = "\x1b]0;owned\x07\x1b[2J\nerror: all is lost\r\u009b31m\u202e\xff";

// What a terminal would obey, or ""; lines are our own.
std::string obeyed(const std::string& text) { return printable_lines(text) == text ? "" : printable(text); }

void check_printed(const Ended& ended) {
  CHECK(obeyed(ended.out) == "");
  CHECK(obeyed(ended.err) == "");
  CAPTURE(ended.out + ended.err);
  // A forged line would begin with what the name holds behind its line end.
  CHECK_FALSE(has("\n" + ended.out + ended.err, "\nerror: all is lost"));
}

// A tree whose second class, and a bad image in each split, have such names.
struct HostilePlace : Workshop {
  HostilePlace() {
    for (const char* split : {"train", "val"}) {
      fs::rename(folder.path() / split / "bee", folder.path() / split / ("bee" + evil));
      write_file(folder.path() / split / "ant" / (evil + ".JPEG"), std::string("no image"));
    }
  }
};

void make_fifo(const fs::path& path) {
  fs::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
}

// One that nobody listens on any more; its name stays.
void make_socket(const fs::path& path) {
  fs::remove(path);
  const Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof address.sun_path);
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

// /dev/zero's: it would be read without end.
int try_device(const fs::path& path) { return mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)); }
void make_device(const fs::path& path) {
  fs::remove(path);
  REQUIRE(try_device(path) == 0);
}
bool can_make_devices(const fs::path& folder) {
  const bool made = try_device(folder / "device") == 0;
  fs::remove(folder / "device");
  return made;
}

// As it stands between quotes.
std::string toml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", c);
    if (c >= 0 && (c < 0x20 || c == 0x7f))
      out += code;
    else
      out += c;
  }
  return out;
}

}  // namespace

TEST_CASE("hostile: names in the data tree reach no terminal, log or drawing raw") {
  const HostilePlace shop;
  const Ended trained =
      shop.train({"--set", "train.max_steps=3", "--set", "data.max_bad=0.5", "--set", "log.name=a"});
  CHECK_MESSAGE(trained.code == 0, trained.err);
  check_printed(trained);
  const fs::path run = shop.runs() / "a";
  for (const char* name : {"train.log", "metrics.jsonl", "quarantine.jsonl", "config.toml", "graph.dot"})
    CHECK_MESSAGE(obeyed(read_text(run / name)) == "", name);
  std::istringstream lines(read_text(run / "quarantine.jsonl"));
  int listed = 0;
  for (std::string line; std::getline(lines, line); ++listed) {
    const nlohmann::json bad = nlohmann::json::parse(line);
    std::string bytes;
    for (std::size_t i = 0; i < bad.at("file_bytes").get<std::string>().size(); i += 2)
      bytes += static_cast<char>(std::stoi(bad["file_bytes"].get<std::string>().substr(i, 2), nullptr, 16));
    CHECK(fs::exists(shop.folder.path() / bytes));  // told so that it can be found
  }
  CHECK(listed > 0);

  check_printed(shop.run({"plan", "tiny.toml"}));
  check_printed(shop.run({"plan", "tiny.toml", "--json"}));
  check_printed(shop.run({"doctor", "tiny.toml"}));
  const Ended shown = shop.run(
      {"show", "tiny.toml", "--split", "val", "--batch", "4", "--sheet", evil.substr(0, 12) + ".jpg"});
  CHECK(shown.code == 0);
  check_printed(shown);
  CHECK(has(shown.out, "bee\\x1b]0;owned\\x07"));
  const Ended drawn = shop.run({"graph", "runs/a", "--format", "svg"});
  check_printed(drawn);
  // A class that is missing in one split is named in the refusal.
  fs::rename(shop.folder.path() / "val" / ("bee" + evil), shop.folder.path() / "val" / ("wasp" + evil));
  const Ended refused = shop.train();
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "missing (1): bee\\x1b]0;owned"));
  check_printed(refused);
}

TEST_CASE("hostile: words of the command line and of configurations are printed as they are spelled") {
  const Workshop shop;
  const std::string config = "tiny" + evil + ".toml";
  fs::copy(shop.folder / "tiny.toml", shop.folder / config);
  write_file(
      shop.folder / "keys.toml",
      std::string("[\"\\u001b[2J\"]\n\"a\\nerror: all is lost\" = 1\n[train]\n\"\\u009b\" = 1\nbatch = "
                  "\"\\u001b\\nerror: all is lost\"\n"));
  const std::string key = "train." + evil.substr(0, evil.size() - 1);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"config", config},
           {"plan", config},
           {"graph", config},
           {"graph", config, "--format", "svg"},
           {"config", "keys.toml"},
           {"config", "none" + evil},
           {"config", "tiny.toml", "--set", key + "=1"},
           {"config", "tiny.toml", "--set", "train.batch=" + evil},
           {"config", "tiny.toml", "--set", "log.name=" + evil.substr(0, evil.size() - 1)},
           {"config", "tiny.toml", "--set", "log.name=" + evil},
           {"plan", "tiny.toml", "--machine", "none" + evil},
           {"train", "tiny.toml", "--" + evil},
           {"train", "tiny.toml", "--resume", evil},
           {evil},
           {"graph", "tiny.toml", "--format", evil},
           {"eval", "tiny.toml", "--checkpoint", evil + ".pt"},
           {"export", evil + ".ckpt", "-o", "x.pt"},
           {"synth", evil, "--classes", "0"}}) {
    CAPTURE(printable(words[0] + " " + words.back()));
    check_printed(shop.run(words));
  }
  const Ended named = shop.run({"config", "tiny.toml", "--set", "log.name=a\u009b\u202eb"});
  CHECK(named.code == 0);
  CHECK(has(named.out, "name = \"a\\u009b\\u202eb\""));
}

TEST_CASE("hostile: paths in configurations are printed as they are spelled, by every command") {
  const Workshop shop;
  const std::string path = "none" + evil.substr(0, evil.size() - 1);  // the last byte is not UTF-8: no TOML
  const std::string word = "=\"" + toml_escaped(path) + "\"";
  // Too long for a file system, which throws; what it throws quotes the name.
  const std::string too_long = "=\"" + toml_escaped(path + std::string(300, 'x')) + "\"";
  const auto check = [&](const std::string& command, const std::string& set,
                         const std::string& more = "--set=train.max_steps=1") {
    CAPTURE(command);
    CAPTURE(printable(set));
    const Ended ended = shop.run({command, "tiny.toml", "--set", set, more});
    CHECK_FALSE(ended.out + ended.err == "");
    check_printed(ended);
  };
  for (const char* command : {"plan", "schedule"})
    CHECK(has(shop.run({command, "tiny.toml", "--set", "data.train" + word}).out,
              printable(path) + " is not there"));
  for (const char* command : {"plan", "schedule", "graph", "train", "doctor"}) {
    check(command, "data.train" + word);
    check(command, "data.val" + too_long);
  }
  for (const char* command : {"plan", "schedule"}) check(command, "data.train" + word, "--json");
  check("train", "log.dir" + word);  // from here on there is a folder of this name
  check("train", "log.dir" + too_long);
  check("train", "model.weights" + word);
  check("train", "data.exclude=[\"" + toml_escaped(path) + "\"]");
}

TEST_CASE("hostile: FIFOs, sockets and devices in the data tree are passed over, and bad images in mid-run") {
  const Workshop shop;
  struct Kind {
    const char* told;
    void (*make)(const fs::path&);
  };
  std::vector<Kind> kinds = {{"is a FIFO, not a file", make_fifo}, {"is a socket, not a file", make_socket}};
  // Only root may make one, and not in every container.
  if (can_make_devices(shop.folder.path()))
    kinds.push_back({"is a device, not a file", make_device});
  else
    MESSAGE("devices cannot be made here: not tried");
  const fs::path train = shop.folder.path() / "train", val = shop.folder.path() / "val";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].make(train / "ant" / (std::to_string(90 + i) + ".JPEG"));
    kinds[i].make(train / ("cicada" + std::to_string(i)));
  }
  const auto number = [](std::size_t i) { return std::to_string(10 + i) + ".JPEG"; };
  const Ended ended =
      shop.train({"--set", "log.name=a", "--set", "train.epochs=4", "--set", "pipeline.read_ahead=4", "--set",
                  "pipeline.prefetch=2", "--set", "data.max_bad=0.5"},
                 {"epoch 0", [&](pid_t) {
                    for (std::size_t i = 0; i < kinds.size(); ++i) {
                      kinds[i].make(train / "ant" / number(i));
                      kinds[i].make(val / "bee" / number(i));
                    }
                  }});
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(has(ended.err, "24 training and 24 validation images"));
  const std::string bad = read_text(shop.runs() / "a" / "quarantine.jsonl");
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CAPTURE(kinds[i].told);
    CHECK(has(bad, "val/bee/" + number(i)));
    CHECK(has(bad, kinds[i].told));
  }
}

TEST_CASE("hostile: FIFOs and devices in a run folder are refused by name, or replaced") {
  const Workshop shop;
  REQUIRE(shop.train({"--set", "log.name=a", "--set", "train.max_steps=3"}).code == 0);
  const fs::path run = shop.runs() / "a";
  const fs::path kept = shop.folder / "kept";
  const auto resume = [&] { return shop.train({"--set", "log.name=a", "--resume", "auto"}); };
  fs::copy(run, kept, fs::copy_options::recursive);
  const auto restore = [&] {
    fs::remove_all(run);
    fs::copy(kept, run, fs::copy_options::recursive);
  };
  for (const char* name : {"metrics.jsonl", "train.log", "quarantine.jsonl", "quarantine.rank1.jsonl",
                           "checkpoints/last.ckpt"}) {
    CAPTURE(name);
    make_fifo(run / name);
    const Ended ended = resume();
    CHECK(ended.code == 2);
    CHECK_MESSAGE(has(ended.err, std::string(name) + ": "), ended.err);
    CHECK(has(ended.err, "is a FIFO, not a file"));
    restore();
  }
  make_fifo(run / "graph.dot");
  const Ended drawn = shop.run({"graph", "runs/a"});
  CHECK(drawn.code == 2);
  CHECK(has(drawn.err, "graph.dot: is a FIFO"));
  restore();
  for (const char* name : {"config.toml", "graph.dot", ".graph.dot.new"}) make_fifo(run / name);
  const Ended went_on = resume();
  CHECK_MESSAGE(went_on.code == 0, went_on.err);
  CHECK(fs::is_regular_file(run / "config.toml"));
  CHECK(fs::is_regular_file(run / "graph.dot"));
}

TEST_CASE("hostile: a configuration may come through a pipe; NUL, depth and length are refused") {
  const Workshop shop;
  const auto shell = [&](const std::string& line) {
    return run_program({"/bin/sh", "-c", line}, shop.folder.path());
  };
  const Ended piped = shell("cat tiny.toml | \"$SLUICE_BINARY\" train /dev/stdin --set train.max_steps=1");
  CHECK_MESSAGE(piped.code == 0, piped.err);
  CHECK(shop.run({"config", "/dev/zero"}).code == 2);
  make_fifo(shop.folder / "fifo.toml");
  const Ended waiting = shop.run({"train", "fifo.toml"});
  CHECK(waiting.code == 2);
  CHECK(has(waiting.err, "fifo.toml: cannot be read: is a FIFO, not a file"));
  const Ended machine = shop.run({"plan", "tiny.toml", "--machine", "fifo.toml"});
  CHECK(machine.code == 2);
  CHECK(has(machine.err, "is a FIFO, not a file"));
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "a.";
  write_file(shop.folder / "deep.toml", deep + "a = 1\n");
  const Ended refused = shop.run({"config", "deep.toml"});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "deep.toml:1:"));
  const Ended nul = shop.train({"--set", "log.dir=\"runs\\u0000x\"", "--set", "train.max_steps=1"});
  CHECK(nul.code == 2);
  CHECK(has(nul.err, "log.dir holds a NUL byte"));
}
