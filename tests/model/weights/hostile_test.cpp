// Files of weights made to hurt: sizes that lie, bombs, loops, names that drive a terminal. Each is read in a
// process of its own with little memory to spare; it must be refused in a line that names the file. Under a
// sanitizer, whose shadow takes terabytes of addresses, the process is its own but has no such bound.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "base/random.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/state_dict.hpp"
#include "model/weights/weights_file.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  while (times-- > 0) text += part;
  return text;
}

// ---- .safetensors ----

std::string safetensors(const std::string& header, std::size_t data = 0) {
  return raw<std::uint64_t>(header.size()) + header + std::string(data, '\0');
}
std::string tensor(const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

// ---- .pt ----

struct Member {
  std::string name, data;
  std::uint16_t method = 0, flags = 0;
  std::uint64_t size = 0, packed = 0;  // as claimed; 0: the truth
  bool wide = false;                   // claimed in zip64 fields
  std::int64_t header = -1;            // where it claims to be; below 0: the truth
  std::uint32_t mark = 0x04034b50;
};

struct Zip {
  std::vector<Member> members;
  std::uint16_t more_members = 0;  // claimed
  std::uint32_t directory_off = 0;
  std::string comment = {};

  [[nodiscard]] std::string bytes() const {
    std::string file, directory;
    for (const Member& m : members) {
      const auto at =
          static_cast<std::uint32_t>(m.header >= 0 ? m.header : static_cast<std::int64_t>(file.size()));
      const std::uint64_t size = m.size ? m.size : m.data.size(),
                          packed = m.packed ? m.packed : m.data.size();
      const auto narrow = [&](std::uint64_t value) {
        return raw<std::uint32_t>(m.wide ? 0xFFFFFFFF : static_cast<std::uint32_t>(value));
      };
      const std::string extra =
          m.wide ? raw<std::uint16_t>(1) + raw<std::uint16_t>(16) + raw(size) + raw(packed) : "";
      const std::string common = raw(m.flags) + raw(m.method) + raw<std::uint32_t>(0) +
                                 raw<std::uint32_t>(0) + narrow(packed) + narrow(size) +
                                 raw(static_cast<std::uint16_t>(m.name.size()));
      file += raw(m.mark) + raw<std::uint16_t>(45) + common + raw<std::uint16_t>(0) + m.name + m.data;
      directory += raw<std::uint32_t>(0x02014b50) + raw<std::uint32_t>(45) + common +
                   raw(static_cast<std::uint16_t>(extra.size())) + raw<std::uint16_t>(0) +
                   raw<std::uint16_t>(0) + raw<std::uint16_t>(0) + raw<std::uint32_t>(0) + raw(at) + m.name +
                   extra;
    }
    const auto count = static_cast<std::uint16_t>(members.size() + more_members);
    return file + directory + raw<std::uint32_t>(0x06054b50) + raw<std::uint32_t>(0) + raw(count) +
           raw(count) + raw(static_cast<std::uint32_t>(directory.size())) +
           raw(static_cast<std::uint32_t>(file.size()) + directory_off) +
           raw(static_cast<std::uint16_t>(comment.size())) + comment;
  }
};

std::string text(const std::string& word) {
  return "X" + raw(static_cast<std::uint32_t>(word.size())) + word;
}
std::string small(int value) { return std::string("K") + static_cast<char>(value); }
std::string wide(std::int64_t value) { return "\x8a\x08" + raw(value); }
// One entry of a state_dict, all of whose tensors share storage 0.
std::string tensor_entry(const std::string& name, const std::string& count, const std::string& shape,
                         const std::string& strides) {
  return text(name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
         text("0") + text("cpu") + count + "tQ" + small(0) + "(" + shape + "t(" + strides + "t\x89}tR";
}
std::string state_dict(const std::string& entries) { return "\x80\x02}(" + entries + "u."; }
std::string one_tensor() { return state_dict(tensor_entry("a", small(1), small(1), small(1))); }
std::string torch_file(const std::string& pickle, std::vector<Member> more = {{"a/data/0", "abcd"}}) {
  std::vector<Member> members{{"a/data.pkl", pickle}};
  members.insert(members.end(), more.begin(), more.end());
  return Zip{members}.bytes();
}

// ---- .ckpt ----

std::string checkpoint(const std::string& header, std::size_t data = 0, std::uint64_t more_claimed = 0) {
  std::string file = "SLUICECK" + raw<std::uint64_t>(24 + header.size() + data + 8 + more_claimed) +
                     raw<std::uint64_t>(header.size()) + header + std::string(data, '\0');
  Checksum sum;
  sum.add(std::as_bytes(std::span(file)));
  return file + raw(sum.value());
}
std::string header(const std::string& tensors, const std::string& arch = "resnet18",
                   const std::string& classes = "10", int version = 1) {
  return "{\"version\":" + std::to_string(version) + ",\"arch\":\"" + arch + "\",\"classes\":" + classes +
         ",\"state\":{},\"tensors\":[" + tensors + "]}";
}
std::string stored(const std::string& name, const std::string& shape, std::uint64_t offset = 0) {
  return R"({"name":")" + name + R"(","dtype":"f32","shape":)" + shape +
         ",\"offset\":" + std::to_string(offset) + "}";
}

// A file that is all hole behind its beginning.
void write_sparse(const fs::path& path, const std::string& beginning, std::uint64_t size) {
  write_file(path, beginning);
  fs::resize_file(path, size);
}
constexpr std::uint64_t nine_gb = 9'000'000'000;

struct Hostile {
  std::string name;
  std::function<void(const fs::path&)> make;
  bool large;
  Hostile(std::string called, std::function<void(const fs::path&)> maker, bool takes_long = false)
      : name(std::move(called)), make(std::move(maker)), large(takes_long) {}
};

std::vector<Hostile> hostile() {
  std::vector<Hostile> all;
  const auto add = [&](const std::string& name, std::string bytes) {
    all.emplace_back(name, [bytes = std::move(bytes)](const fs::path& path) { write_file(path, bytes); });
  };
  const auto add_large = [&](const std::string& name, auto bytes) {
    all.emplace_back(
        name, [bytes](const fs::path& path) { write_file(path, bytes()); }, true);
  };
  const std::string esc = "\x1b[2J\n\u202e";

  add("empty.safetensors", "");
  add("short.safetensors", "1234567");
  add("header size of all bits.safetensors", raw(~std::uint64_t{0}) + "{}");
  add("header longer than file.safetensors", raw<std::uint64_t>(100) + "{}");
  add("not JSON.safetensors", safetensors("{{{"));
  add("an array.safetensors", safetensors("[1,2]"));
  add_large("nested.safetensors", [] { return safetensors("{\"a\":" + repeated("[", 8'000'000)); });
  add_large("nested and closed.safetensors", [] {
    return safetensors("{\"a\":" + repeated("[", 4'000'000) + repeated("]", 4'000'000) + "}");
  });
  add_large("millions of values.safetensors",
            [] { return safetensors("{\"a\":[" + repeated("[],", 5'000'000) + "[]]}"); });
  add("no dtype.safetensors", safetensors(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4));
  add("dtype that drives a terminal.safetensors",
      safetensors("{\"a\":" + tensor("[1]", "[0,4]", "\\u001b[2J\\n") + "}", 4));
  add("name that drives a terminal.safetensors",
      safetensors("{\"\\u001b[2J\\n\\u009b31m\u202e\":" + tensor("[-1]", "[0,4]") + "}", 4));
  add("negative shape.safetensors", safetensors("{\"a\":" + tensor("[-1,-4]", "[0,16]") + "}", 16));
  add("overflowing shape.safetensors",
      safetensors("{\"a\":" + tensor("[4611686018427387904,4]", "[0,0]") + "}"));
  add("offsets swapped.safetensors", safetensors("{\"a\":" + tensor("[1]", "[4,0]") + "}", 4));
  add("overlapping.safetensors",
      safetensors("{\"a\":" + tensor("[2]", "[0,8]") + ",\"b\":" + tensor("[2]", "[4,12]") + "}", 12));
  add("gap.safetensors", safetensors("{\"a\":" + tensor("[1]", "[4,8]") + "}", 8));
  add("beyond the end.safetensors", safetensors("{\"a\":" + tensor("[100]", "[0,400]") + "}", 4));
  add("not UTF-8.safetensors", safetensors("{\"\xff\xfe\":" + tensor("[1]", "[0,4]") + "}", 4));
  add("twice.safetensors",
      safetensors("{\"module.a\":" + tensor("[1]", "[0,4]") + ",\"a\":" + tensor("[1]", "[4,8]") + "}", 8));
  all.emplace_back("nine gigabytes.safetensors", [](const fs::path& path) {
    const std::string head = "{\"a\":" + tensor("[2250000000]", "[0,9000000000]") + "}";
    write_sparse(path, safetensors(head), nine_gb + 8 + head.size());
  });
  all.emplace_back("a header of nine gigabytes.safetensors",
                   [](const fs::path& path) { write_sparse(path, raw(nine_gb - 8), nine_gb); });

  add("mark alone.pt", "PK");
  add("old format.pt", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  add("no pickle.pt", Zip{{{"a/data/0", "abcd"}}}.bytes());
  add("bomb in the version.pt",
      torch_file(one_tensor(), {{"a/version", std::string(2 << 20, '\xed'), 8, 0, 6ULL << 30, 0, true}}));
  add("bomb in the pickle.pt", Zip{{{"a/data.pkl", std::string(1000, '\xed'), 8, 0, 1 << 30}}}.bytes());
  add("bomb in a storage.pt",
      torch_file(one_tensor(), {{"a/data/0", std::string(1000, '\xed'), 8, 0, 1 << 30}}));
  add("stored with two sizes.pt", torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 3U << 30}}));
  add("stored beyond the end.pt", torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 3U << 30, 3U << 30}}));
  add("stored in exabytes.pt",
      torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 1ULL << 62, 1ULL << 62, true}}));
  add_large("one stretch, many names.pt", [] {
    std::vector<Member> members{{"a/data/0", std::string(1 << 20, 'x')}};
    for (int i = 1; i < 1000; ++i)
      members.push_back({"a/data/" + std::to_string(i), "", 0, 0, 1 << 20, 1 << 20, false, 0});
    return torch_file(one_tensor(), members);
  });
  add("no local header.pt", torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 0, 0, false, -1, 0}}));
  add("entry beyond the end.pt",
      torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 0, 0, false, 0x7FFFFFFF}}));
  add("encrypted.pt", torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 1}}));
  add("the same name twice.pt", torch_file(one_tensor(), {{"a/data/0", "abcd"}, {"a/data/0", "efgh"}}));
  add("more entries than there are.pt", Zip{{{"a/data.pkl", one_tensor()}}, 60000}.bytes());
  add("directory beyond the end.pt", Zip{{{"a/data.pkl", one_tensor()}}, 0, 0x70000000}.bytes());
  add("name that drives a terminal.pt", torch_file(one_tensor(), {{"a/" + esc, "abcd", 8}}));
  add("pickle that is empty.pt", torch_file(""));
  add("pickle cut off.pt", torch_file("\x80\x02X\xff\xff\xff\xff"));
  add("pickle that runs a program.pt", torch_file("\x80\x02"
                                                  "cos\nsystem\n(" +
                                                  text("touch hacked") + "tR."));
  add_large("pickle that doubles.pt", [] {
    return torch_file("\x80\x02]q" + std::string(1, '\0') +
                      repeated("(h" + std::string(1, '\0') + "h" + std::string(1, '\0') + "e", 2'000'000) +
                      ".");
  });
  add_large("pickle of millions.pt",
            [] { return torch_file("\x80\x02](" + repeated("N", 12'000'000) + "e."); });
  add_large("pickle nested.pt",
            [] { return torch_file("\x80\x02" + repeated("]", 500'000) + repeated("a", 499'999) + "."); });
  add("tensor of a terabyte.pt",
      torch_file(state_dict(tensor_entry("a", wide(1LL << 38), wide(1LL << 38), small(1)))));
  add("tensor that overflows.pt",
      torch_file(
          state_dict(tensor_entry("a", small(1), wide(INT64_MAX) + wide(INT64_MAX), small(1) + small(1)))));
  add("strides beyond the storage.pt",
      torch_file(state_dict(tensor_entry("a", small(1), small(2), wide(1LL << 40)))));
  add("negative count.pt", torch_file(state_dict(tensor_entry("a", wide(-1), small(1), small(1)))));
  add("tensor name that drives a terminal.pt",
      torch_file(state_dict(tensor_entry(esc, small(9), small(9), small(1)))));
  // A shape made by repeating one value, and one tensor of that shape under many names.
  add_large("one long shape, many names.pt", [] {
    const std::string shape = small(1) + std::string(999'000, '2');
    std::string entries = tensor_entry("a", small(1), shape, shape) + "q" + std::string(1, '\0');
    for (int i = 0; i < 500'000; ++i) entries += text(std::to_string(i)) + "h" + std::string(1, '\0');
    return torch_file(state_dict(entries));
  });
  add("a shape of many dimensions.pt",
      torch_file(state_dict(tensor_entry("a", small(1), small(1) + std::string(100'000, '2'),
                                         small(1) + std::string(100'000, '2')))));
  add_large("one name, many times.pt", [] {
    std::string entries = tensor_entry("a", small(1), small(1), small(1)) + "q" + std::string(1, '\0');
    for (int i = 0; i < 15'000; ++i) entries += text("b") + "h" + std::string(1, '\0');
    return torch_file(state_dict(entries));
  });
  add_large("pickle that keeps one value for ever.pt",
            [] { return torch_file("\x80\x02}" + repeated("\x94", 16'000'000) + "."); });
  add_large("pickle of marks.pt", [] { return torch_file("\x80\x02}" + repeated("(", 16'000'000) + "."); });
  add_large("pickle that repeats itself.pt",
            [] { return torch_file("\x80\x02}" + repeated("2", 16'000'000) + "."); });
  add_large("many names, one storage.pt", [] {
    std::string entries;
    for (int i = 0; i < 20'000; ++i)
      entries += tensor_entry(std::to_string(i), wide(1 << 20), wide(1 << 20), small(1));
    return torch_file(state_dict(entries), {{"a/data/0", std::string(4 << 20, 'x')}});
  });
  add("big-endian.pt", torch_file(one_tensor(), {{"a/data/0", "abcd"}, {"a/byteorder", "big"}}));

  add("empty.ckpt", "");
  add("mark alone.ckpt", "SLUICECK");
  add("size that lies.ckpt", checkpoint(header(""), 0, 1));
  add("header of all bits.ckpt",
      "SLUICECK" + raw<std::uint64_t>(40) + raw(~std::uint64_t{0}) + std::string(16, 'x'));
  add("not JSON.ckpt", checkpoint("{{{{"));
  add_large("nested.ckpt", [] { return checkpoint("{\"version\":1,\"state\":" + repeated("[", 8'000'000)); });
  add_large("millions of values.ckpt",
            [] { return checkpoint("{\"version\":1,\"state\":[" + repeated("[],", 5'000'000) + "[]]}"); });
  add("negative shape.ckpt", checkpoint(header(stored("model.a", "[-4]")), 16));
  add_large("tensors on top of each other.ckpt", [] {
    std::string tensors = stored("model.0", "[1000000]");
    for (int i = 1; i < 5000; ++i) tensors += "," + stored("model." + std::to_string(i), "[1000000]");
    return checkpoint(header(tensors), 4'000'000);
  });
  add_large("hundreds of thousands of tensors.ckpt", [] {
    std::string tensors = stored("model.0", "[0]");
    for (int i = 1; i < 70'000; ++i) tensors += "," + stored("model." + std::to_string(i), "[0]");
    return checkpoint(header(tensors));
  });
  add("another version.ckpt", checkpoint(header(stored("model.a", "[1]"), "resnet18", "10", 7), 4));
  add("version of another kind.ckpt", checkpoint("{\"version\":{\"\\u001b\":[]}}", 4));
  add("names that drive a terminal.ckpt",
      checkpoint(header(stored("model.\\u001b[2J\\n", "[9]"), "\\u001b]0;x\\u0007"), 4));
  add("no weights.ckpt", checkpoint(header(stored("momentum.a", "[1]")), 4));
  add("wrong checksum.ckpt", [] {
    std::string file = checkpoint(header(stored("model.a", "[1]")), 4);
    file.back() = static_cast<char>(file.back() ^ 1);
    return file;
  }());
  const auto sparse = [&](const std::string& name, const std::string& head) {
    all.emplace_back(name, [head](const fs::path& path) {
      write_sparse(path, "SLUICECK" + raw(nine_gb) + raw<std::uint64_t>(head.size()) + head, nine_gb);
    });
  };
  sparse("nine gigabytes of nothing.ckpt", header(""));
  sparse("nine gigabytes, a word of them told.ckpt", header(stored("model.a", "[1]")));
  {
    std::string head = header(stored("model.a", "[2249999900]"));
    const std::uint64_t floats = (nine_gb - 24 - 8 - head.size()) / 4;
    head = header(stored("model.a", "[" + std::to_string(floats) + "]"));
    head.resize(nine_gb - 24 - 8 - 4 * floats, ' ');
    sparse("nine gigabytes in one tensor.ckpt", head);
    // So many classes could need them.
    head = header(stored("model.a", "[" + std::to_string(floats) + "]"), "resnet18", "9999999");
    const std::uint64_t rest = (nine_gb - 24 - 8 - head.size()) / 4;
    head = header(stored("model.a", "[" + std::to_string(rest) + "]"), "resnet18", "9999999");
    head.resize(nine_gb - 24 - 8 - 4 * rest, ' ');
    sparse("nine gigabytes for ten million classes.ckpt", head);
  }
  sparse("nine gigabytes of another version.ckpt", header("", "resnet18", "10", 7));
  all.emplace_back("nine gigabytes of header.ckpt", [](const fs::path& path) {
    write_sparse(path, "SLUICECK" + raw(nine_gb) + raw<std::uint64_t>(nine_gb - 32), nine_gb);
  });
  for (const char* ending : {".safetensors", ".pt", ".ckpt"}) {
    all.emplace_back(std::string("a FIFO") + ending,
                     [](const fs::path& path) { REQUIRE(mkfifo(path.c_str(), 0600) == 0); });
    all.emplace_back(std::string("a device") + ending,
                     [](const fs::path& path) { fs::create_symlink("/dev/zero", path); });
    all.emplace_back(std::string("a link to itself") + ending,
                     [](const fs::path& path) { fs::create_symlink(path.filename(), path); });
  }
  return all;
}

// How reading a file ended, in a process of its own with 300 MB more than it begins with.
enum class Verdict { taken, refused, untold, slow, crashed };
// None of those that a sanitizer ends a process with.
constexpr int told_taken = 90, told_refused = 91, told_badly = 92, told_unbound = 99;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool bounded = false;
#else
constexpr bool bounded = true;
#endif

Verdict read_apart(const fs::path& path) {
  const pid_t child = fork();
  if (child == 0) {
    long pages = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
      std::fclose(file);
    }
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max =
        static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (300 << 20);
    if (bounded && setrlimit(RLIMIT_AS, &limit) != 0) _exit(told_unbound);
    alarm(60);
    const Result<Snapshot> read = read_weights(path);
    if (read) _exit(told_taken);
    const std::string told = read.error().text();
    // Memory that was asked for was refused by luck.
    const bool memory = told.find(no_memory("", "").cause) != std::string::npos;
    const bool well = printable(told) == told && told.find(path.filename()) != std::string::npos && !memory;
    _exit(well && told.size() < 10'000 ? told_refused : told_badly);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? Verdict::slow : Verdict::crashed;
  switch (WEXITSTATUS(status)) {
    case told_taken:
      return Verdict::taken;
    case told_refused:
      return Verdict::refused;
    case told_badly:
      return Verdict::untold;
    default:
      REQUIRE(WEXITSTATUS(status) != told_unbound);
      return Verdict::crashed;
  }
}

// Those that take megabytes to write are for the long suite.
void check_refused(bool large) {
  const TemporaryFolder folder;
  write_file(folder / "sound.pt", torch_file(one_tensor()));
  write_file(folder / "sound64.pt", torch_file(one_tensor(), {{"a/data/0", "abcd", 0, 0, 4, 4, true}}));
  write_file(folder / "sound.safetensors", safetensors("{\"a\":" + tensor("[1]", "[0,4]") + "}", 4));
  write_file(folder / "sound.ckpt", checkpoint(header(stored("model.a", "[1]")), 4));
  for (const char* name : {"sound.pt", "sound64.pt", "sound.safetensors", "sound.ckpt"})
    REQUIRE_MESSAGE(read_apart(folder / name) == Verdict::taken, name);
  int tried = 0, refused = 0;
  for (const Hostile& file : hostile()) {
    if (file.large && !large) continue;
    CAPTURE(file.name);
    const fs::path path = folder / file.name;
    file.make(path);
    const Verdict verdict = read_apart(path);
    CHECK(verdict == Verdict::refused);
    refused += verdict == Verdict::refused;
    ++tried;
    fs::remove(path);
  }
  MESSAGE(tried << " hostile files: " << refused << " refused");
  CHECK(tried >= (large ? 88 : 71));
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("hostile weights: memory that the system does not give is an error that names the file") {
  const TemporaryFolder folder;
  const std::uint64_t size = 1'000'000'000;
  const auto sparse = [&](const std::string& name, const std::string& start, std::uint64_t whole) {
    write_sparse(folder / name, start, whole);
    CHECK_MESSAGE(read_apart(folder / name) == Verdict::untold, name);
  };
  std::string head = header(stored("model.a", "[250000000]"), "resnet18", "9999999");
  head.resize((head.size() + 63) / 64 * 64, ' ');
  const std::uint64_t whole = 24 + head.size() + size + 8;
  sparse("w.ckpt", "SLUICECK" + raw(whole) + raw<std::uint64_t>(head.size()) + head, whole);
  const std::string json = "{\"a\":" + tensor("[250000000]", "[0,1000000000]") + "}";
  sparse("w.safetensors", safetensors(json), 8 + json.size() + size);
}
#endif

TEST_CASE("hostile weights: small ones are refused by name, within 300 MB") { check_refused(false); }

TEST_SUITE("long") {
  TEST_CASE("hostile weights: each is refused by name, within 300 MB") { check_refused(true); }

  TEST_CASE("hostile weights: five thousand mutants of sound files are taken or refused, within 300 MB") {
    const TemporaryFolder folder;
    Snapshot sound;
    sound.arch = "resnet18";
    sound.classes = 10;
    for (int i = 0; i < 4; ++i) sound.add("model.layer" + std::to_string(i), "f32", {3, 5});
    REQUIRE(write_checkpoint(sound, folder / "w.ckpt"));
    std::vector<Member> storages;
    for (const StoredTensor& tensor : sound.tensors)
      storages.push_back({"a/data/" + std::to_string(storages.size()), std::string(tensor.bytes, '\0')});
    write_file(folder / "w.pt", torch_file(pickle_state_dict(sound), storages));
    REQUIRE(write_safetensors(sound, folder / "w.safetensors"));
    int taken = 0, refused = 0;
    for (int i = 0; i < 5000; ++i) {
      Random random(7, 0, static_cast<std::uint64_t>(i), Purpose::synth);
      const char* const ending[] = {".ckpt", ".pt", ".safetensors"};
      const std::string kind = ending[i % 3];
      std::string bytes = test::read_text(folder / ("w" + kind));
      for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
        const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
        switch (random.below(4)) {
          case 0:
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
            break;
          case 1:
            bytes[at] = static_cast<char>(random.bits());
            break;
          case 2:
            bytes.replace(at, std::min<std::size_t>(8, bytes.size() - at),
                          std::string(8, random.below(2) ? '\xff' : '\0'));
            break;
          default:
            bytes.erase(at, 1 + random.below(20));
        }
        if (bytes.empty()) break;
      }
      if (kind == ".ckpt" && bytes.size() > 8) {  // so that the checksum hides nothing
        bytes.resize(bytes.size() - 8);
        Checksum sum;
        sum.add(std::as_bytes(std::span(bytes)));
        bytes += raw(sum.value());
      }
      const fs::path path = folder / ("mutant" + kind);
      write_file(path, bytes);
      const Verdict verdict = read_apart(path);
      if (verdict != Verdict::taken && verdict != Verdict::refused)
        FAIL_CHECK("mutant " << i << kind << " ended with verdict " << static_cast<int>(verdict));
      taken += verdict == Verdict::taken;
      refused += verdict == Verdict::refused;
    }
    MESSAGE("5000 mutants: " << taken << " taken, " << refused << " refused");
    CHECK(taken > 100);
    CHECK(refused > 1000);
  }
}
