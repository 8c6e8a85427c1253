#include "model/weights/weights_file.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "model/weights/safetensors.hpp"
#include "model/weights/torch_file.hpp"
#include "tests/support/crash_disk.hpp"

using namespace sluice;
using test::read_text;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

void put(Snapshot& into, const std::string& name, const std::vector<float>& values) {
  const auto room = into.add(name, "f32", {static_cast<std::int64_t>(values.size())});
  std::memcpy(room.data(), values.data(), room.size());
}

Snapshot checkpoint(bool averages) {
  Snapshot snapshot;
  snapshot.arch = "resnet18";
  snapshot.classes = 3;
  snapshot.source = "runs/a/checkpoints/last.ckpt";
  put(snapshot, "model.conv1.weight", {1.5f, -2, 3});
  snapshot.add("model.bn1.num_batches_tracked", "i64", {})[0] = std::byte{7};
  put(snapshot, "momentum.conv1.weight", {9, 9, 9});
  if (averages) put(snapshot, "ema.conv1.weight", {4, 5, 6});
  return snapshot;
}

std::vector<float> floats(const Snapshot& snapshot, const std::string& name) {
  const StoredTensor* tensor = snapshot.find(name);
  REQUIRE(tensor);
  CHECK(tensor->dtype == "f32");
  std::vector<float> values(tensor->bytes / 4);
  std::memcpy(values.data(), snapshot.bytes(*tensor).data(), tensor->bytes);
  return values;
}

std::string refusal(const auto& result) { return result ? "" : result.error().text(); }
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("weights: written for Python and read back, the network's tensors alone") {
  const TemporaryFolder folder;
  for (const char* name : {"w.safetensors", "w.pt", "w.pth"}) {
    CAPTURE(name);
    const fs::path path = folder / name;
    {
      const test::CrashDisk disk(folder.path());
      REQUIRE(write_weights(checkpoint(true), false, path));
      CHECK(disk.calls().back() == "sync .");
      CHECK(disk.unsafe().empty());
    }
    auto read = read_weights(path);
    REQUIRE(read);
    CHECK(read->source == path.string());
    CHECK(read->tensors.size() == 2);
    CHECK(floats(*read, "model.conv1.weight") == std::vector<float>{1.5f, -2, 3});
    const StoredTensor* counter = read->find("model.bn1.num_batches_tracked");
    REQUIRE(counter);
    CHECK(counter->dtype == "i64");
    CHECK(counter->shape.empty());
    CHECK(read->bytes(*counter)[0] == std::byte{7});

    REQUIRE(write_weights(checkpoint(true), true, path));
    read = read_weights(path);
    REQUIRE(read);
    CHECK(read->tensors.size() == 2);
    CHECK(floats(*read, "model.conv1.weight") == std::vector<float>{4, 5, 6});
  }
  CHECK(read_safetensors(folder / "w.safetensors")->find("conv1.weight"));
  CHECK(read_torch_file(folder / "w.pt")->find("conv1.weight"));
}

TEST_CASE("weights: read out of a checkpoint, trained or averaged") {
  const TemporaryFolder folder;
  const fs::path path = folder / "last.ckpt";
  REQUIRE(write_checkpoint(checkpoint(true), path));
  CHECK(floats(*read_weights(path), "model.conv1.weight") == std::vector<float>{1.5f, -2, 3});
  const auto averaged = read_weights(path, true);
  CHECK(floats(*averaged, "model.conv1.weight") == std::vector<float>{4, 5, 6});
  CHECK(averaged->tensors.size() == 2);
  CHECK(averaged->arch == "resnet18");
  CHECK(averaged->classes == 3);
}

TEST_CASE("weights: what cannot be done is told") {
  const TemporaryFolder folder;
  const auto written = write_weights(checkpoint(false), true, folder / "w.pt");
  CHECK(has(refusal(written), "last.ckpt: has no averaged weights"));
  CHECK(has(refusal(write_weights(checkpoint(true), false, folder / "w.onnx")), ".safetensors, .pt or .pth"));
  CHECK(has(refusal(write_weights(Snapshot{}, false, folder / "w.pt")), "no weights"));
  CHECK(has(refusal(write_weights(checkpoint(true), false, folder / "none" / "w.pt")), "No such file"));
  CHECK(fs::is_empty(folder.path()));
  for (const char* name : {"w.pt", "w.safetensors", "w.ckpt"})
    CHECK(has(refusal(read_weights(folder / name)), std::string(name) + ": cannot be opened"));
  CHECK(has(refusal(read_weights(folder / "w.bin")), "w.bin: its name tells no format"));
  CHECK(has(refusal(read_weights(folder / "w.pt", true)), "give a .ckpt file"));
  fs::create_directory(folder / "d.pt");
  CHECK(has(refusal(read_weights(folder / "d.pt")), "d.pt"));
  write_file(folder / "w.ckpt", std::string("SLUICECK"));
  CHECK(has(refusal(read_weights(folder / "w.ckpt")), "w.ckpt: too short"));
}

TEST_CASE("weights: Python's wrappers leave the names, half precision becomes single") {
  const TemporaryFolder folder;
  Snapshot half;
  for (const char* dtype : {"f16", "bf16"}) {
    const std::uint16_t values[] = {static_cast<std::uint16_t>(dtype[0] == 'f' ? 0x3c00 : 0x3f80), 0x8000};
    const auto room = half.add(std::string("_orig_mod.module.") + dtype, dtype, {2});
    std::memcpy(room.data(), values, sizeof values);
  }
  half.add("module.model.count", "i64", {});
  for (const char* name : {"h.pt", "h.safetensors"}) {
    REQUIRE(
        (fs::path(name).extension() == ".pt" ? write_torch_file : write_safetensors)(half, folder / name));
    const auto read = read_weights(folder / name);
    REQUIRE(read);
    CHECK(floats(*read, "model.f16") == std::vector<float>{1, -0.f});
    CHECK(floats(*read, "model.bf16") == std::vector<float>{1, -0.f});
    CHECK(read->find("model.count")->dtype == "i64");
  }
  put(half, "module.f16", {1});
  REQUIRE(write_safetensors(half, folder / "twice.safetensors"));
  CHECK(has(refusal(read_weights(folder / "twice.safetensors")), "f16 more than once"));
}

TEST_CASE("weights: no cut and no changed byte of a .pt file brings it down") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.pt";
  REQUIRE(write_weights(checkpoint(true), false, path));
  const std::string sound = read_text(path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  int refused = 0;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    const auto set = [&](int byte) {
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
    };
    set(sound[at] ^ 0xff);
    const auto read = read_weights(path);
    refused += !read;
    if (!read && !has(refusal(read), path.string())) FAIL("byte " << at << ": " << refusal(read));
    set(sound[at]);
  }
  CHECK(refused > 200);
  REQUIRE(read_weights(path));
  for (std::size_t size = sound.size() - 1; size > 30; size -= 23) {
    fs::resize_file(path, size);
    if (!has(refusal(read_weights(path)), path.string())) FAIL("a cut at " << size << " went unseen");
  }
  write_file(path, "PK\3\4" + std::string(1000, 'x'));
  CHECK(has(refusal(read_weights(path)), "damaged"));
  write_file(path, std::string("\x80\x02\x8a\x0al\xfc", 6));
  CHECK(has(refusal(read_weights(path)), "not a zip file"));
}
