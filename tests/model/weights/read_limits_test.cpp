// What is refused before memory is taken for it: by what the caller expects, and by what the machine has.
#include <doctest/doctest.h>

#include <cstring>

#include "model/weights/network_part.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/weights_file.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string refusal(const auto& result) { return result ? "" : result.error().text(); }

Snapshot sample(const std::string& dtype = "f32") {
  Snapshot snapshot;
  snapshot.arch = "resnet18";
  snapshot.classes = 10;
  snapshot.add("model.a", dtype, {1000});
  snapshot.add("momentum.a", dtype, {1000});
  return snapshot;
}

// As long as it says, and nothing in it.
void write_hole(const fs::path& path, std::uint64_t size, const std::string& classes, int version = 1) {
  const auto raw = [](std::uint64_t value) { return std::string(reinterpret_cast<const char*>(&value), 8); };
  const auto header = [&](std::uint64_t floats) {
    return "{\"version\":" + std::to_string(version) + R"(,"arch":"resnet18","classes":)" + classes +
           R"(,"state":{},"tensors":[{"name":"model.a","dtype":"f32","shape":[)" + std::to_string(floats) +
           R"(],"offset":0}]})";
  };
  const std::uint64_t floats = (size - 1000) / 4;
  std::string text = header(floats);
  text.resize(size - 32 - 4 * floats, ' ');
  write_file(path, "SLUICECK" + raw(size) + raw(text.size()) + text);
  fs::resize_file(path, size);
}

}  // namespace

TEST_CASE("read limits: a checkpoint of another network is refused, and is not damaged") {
  const TemporaryFolder folder;
  const fs::path path = folder / "last.ckpt";
  REQUIRE(write_checkpoint(sample(), path));
  bool damaged = true;
  CHECK(read_checkpoint(path, {.arch = "resnet18", .classes = 10}, &damaged));
  CHECK(read_checkpoint(path, {.arch = "resnet18"}));
  CHECK(has(refusal(read_checkpoint(path, {.arch = "resnet34", .classes = 10}, &damaged)),
            "last.ckpt: arch was \"resnet18\" and is now \"resnet34\""));
  CHECK_FALSE(damaged);
  CHECK(has(refusal(read_checkpoint(path, {.arch = "resnet18", .classes = 11}, &damaged)),
            "last.ckpt: classes was 10 and is now 11"));
  CHECK_FALSE(damaged);
  CHECK(has(refusal(read_weights(path, false, {.classes = 11})), "classes was 10 and is now 11"));

  // One that tells of another network because of a changed bit is damaged.
  std::string bytes = test::read_text(path);
  bytes[bytes.find("resnet18") + 7] = '9';
  write_file(path, bytes);
  CHECK(has(refusal(read_checkpoint(path, {.arch = "resnet18", .classes = 10}, &damaged)), "checksum"));
  CHECK(damaged);
}

TEST_CASE("read limits: what cannot be the run's network is refused unread, however large") {
  const TemporaryFolder folder;
  const fs::path path = folder / "last.ckpt";
  bool damaged = true;
  write_hole(path, 7'000'000'000, "9999999");
  CHECK(has(refusal(read_checkpoint(path, {.arch = "resnet18", .classes = 10}, &damaged)),
            "classes was 9999999 and is now 10"));
  CHECK_FALSE(damaged);
  CHECK(has(refusal(read_checkpoint(path, {.memory = 1'000'000}, &damaged)),
            "last.ckpt: would take 6999999000 bytes of memory, 1000000 are there for it"));
  CHECK_FALSE(damaged);
  CHECK(has(refusal(read_weights(path, false, {.memory = 1'000'000})), "1000000 are there for it"));
  write_hole(path, 600'000'000'000, "9999999");
  CHECK(has(refusal(read_checkpoint(path, {}, &damaged)), "damaged: has 599999999000 bytes of tensors"));
  CHECK(damaged);
  write_hole(path, 600'000'000'000, "9999999", 7);
  CHECK(has(refusal(read_checkpoint(path, {}, &damaged)), "tells format version 7"));
  CHECK_FALSE(damaged);
}

TEST_CASE("read limits: the machine's memory is the bound, eight gigabytes at most") {
  const std::uint64_t memory = memory_for_weights();
  CHECK(memory > 1 << 20);
  CHECK(memory <= most_weights);
}

TEST_CASE("read limits: memory counts everything that is held at once, to the byte") {
  const TemporaryFolder folder;
  const std::size_t single = 4032, half = 2048;  // a thousand values, at a multiple of 64
  REQUIRE(write_safetensors(sample(), folder / "f32.safetensors"));
  REQUIRE(write_safetensors(sample("f16"), folder / "f16.safetensors"));
  REQUIRE(write_checkpoint(sample(), folder / "f32.ckpt"));
  const auto least = [&](const char* name) {
    std::uint64_t memory = 0;
    while (!read_weights(folder / name, false, {.memory = memory})) ++memory;
    return memory;
  };
  CHECK(least("f32.safetensors") == 2 * single);
  CHECK(least("f16.safetensors") == half + 2000 + 2 * single);  // what was read, and what it becomes
  CHECK(least("f32.ckpt") == single + 4000 + single);           // all of it, and the network
  CHECK(has(refusal(read_weights(folder / "f16.safetensors", false, {.memory = 2 * single})),
            "f16.safetensors: "));
}

TEST_CASE("read limits: room is made once") {
  const TemporaryFolder folder;
  Snapshot many;
  for (int i = 0; i < 100; ++i) many.add("t" + std::to_string(i), "f16", {77});
  REQUIRE(write_safetensors(many, folder / "w.safetensors"));
  for (const Result<Snapshot>& read :
       {read_safetensors(folder / "w.safetensors"), read_weights(folder / "w.safetensors")}) {
    REQUIRE(read);
    CHECK(read->data.capacity() < read->data.size() + 64);
  }
}

TEST_CASE("read limits: tensors are few, their names short, their dimensions no more than 64") {
  const TemporaryFolder folder;
  const auto safetensors = [&](const std::string& name, std::size_t rank, int count) {
    std::string shape = "1", header = "{";
    for (std::size_t i = 1; i < rank; ++i) shape += ",1";
    for (int i = 0; i < count; ++i)
      header += (i ? ",\"" : "\"") + name + std::to_string(i) + R"(":{"dtype":"F16","shape":[)" + shape +
                "],\"data_offsets\":[" + std::to_string(2 * i) + "," + std::to_string(2 * i + 2) + "]}";
    header += "}";
    const std::uint64_t size = header.size();
    write_file(folder / "w.safetensors", std::string(reinterpret_cast<const char*>(&size), 8) + header +
                                             std::string(static_cast<std::size_t>(2 * count), '\0'));
    return refusal(read_weights(folder / "w.safetensors"));
  };
  CHECK(safetensors("a", 64, 1).empty());
  CHECK(has(safetensors("a", 65, 1), "its tensor a0 has a shape"));
  CHECK(has(safetensors("a", 300'000, 1), "its tensor a0 has a shape"));
  CHECK(safetensors(std::string(4095, 'n'), 1, 1).empty());
  CHECK(has(safetensors(std::string(4096, 'n'), 1, 1), "a name of 4097 bytes"));
  CHECK(has(safetensors("a", 1, 20'002), "more than 20000 tensors"));

  Snapshot checkpoint = sample();
  checkpoint.add(std::string(100'000, 'n'), "f32", {1});
  REQUIRE(write_checkpoint(checkpoint, folder / "w.ckpt"));
  CHECK(has(refusal(read_checkpoint(folder / "w.ckpt")), "a name of 100000 bytes"));
  checkpoint = sample();
  checkpoint.tensors[0].shape.resize(66, 1);
  REQUIRE(write_checkpoint(checkpoint, folder / "w.ckpt"));
  CHECK(has(refusal(read_checkpoint(folder / "w.ckpt")), "its tensor model.a has an impossible"));
}
