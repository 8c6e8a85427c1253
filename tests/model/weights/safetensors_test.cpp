#include "model/weights/safetensors.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/crash_disk.hpp"
#include "tests/support/snapshots.hpp"

using namespace sluice;
using test::read_text;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

Snapshot sample() {
  return test::filled({{"a", "bf16", {5}}, {"b", "f32", {2, 3}}, {"c", "i64", {}}, {"empty", "f32", {0, 4}}});
}

// What the file must look like, from its header's text and its tensors' bytes.
std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + header + data;
}

std::string refusal(const fs::path& path) {
  const auto read = read_safetensors(path);
  return read ? "" : read.error().text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("safetensors: comes back as it was written, aligned to its types") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.safetensors";
  const Snapshot written = sample();
  REQUIRE(write_safetensors(written, path));
  const auto read = read_safetensors(path);
  REQUIRE(read);
  CHECK(read->arch == "resnet18");
  CHECK(read->classes == 10);
  CHECK(read->source == path.string());
  REQUIRE(read->tensors.size() == written.tensors.size());
  for (const StoredTensor& tensor : written.tensors) {
    CAPTURE(tensor.name);
    const StoredTensor* other = read->find(tensor.name);
    REQUIRE(other);
    CHECK(other->dtype == tensor.dtype);
    CHECK(other->shape == tensor.shape);
    CHECK(std::ranges::equal(read->bytes(*other), written.bytes(tensor)));
  }
  const std::string text = read_text(path);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, text.data(), sizeof header_size);
  CHECK(header_size % 8 == 0);
  CHECK(text.size() == 8 + header_size + 8 + 24 + 10);
  const auto header = nlohmann::json::parse(text.substr(8, header_size));
  CHECK(header["__metadata__"] == nlohmann::json{{"format", "pt"}, {"arch", "resnet18"}, {"classes", "10"}});
  CHECK(header["c"] == nlohmann::json{{"dtype", "I64"},
                                      {"shape", nlohmann::json::array()},
                                      {"data_offsets", nlohmann::json::array({0, 8})}});
  CHECK(header["b"]["data_offsets"] == nlohmann::json::array({8, 32}));
  CHECK_FALSE(fs::exists(path.string() + ".partial"));
}

TEST_CASE("safetensors: a header that lies is refused by name") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.safetensors";
  const auto refuse = [&](const std::string& header, std::size_t data = 8) {
    write_file(path, file_of(header, std::string(data, 'x')));
    const std::string text = refusal(path);
    CHECK((text.empty() || has(text, path.string())));
    return text;
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(refuse(tensor("F32", "[2]", "[0,8]")).empty());
  CHECK(refuse(tensor("F32", "[2]", "[0,8]") + "   ").empty());
  CHECK(refuse("{}", 0).empty());
  CHECK(has(refuse(tensor("F32", "[2]", "[0,8]"), 9), "too long"));
  CHECK(has(refuse(tensor("F32", "[2]", "[0,8]"), 7), "too short"));
  CHECK(has(refuse(tensor("F32", "[2]", "[1,9]")), "gap"));
  CHECK(has(refuse(tensor("U8", "[8]", "[0,8]")), "type U8"));
  CHECK(has(refuse(R"({"t":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})"), "tensor t has no sound dtype"));
  for (const char* shape : {"[3]", "[4294967296,4294967296,2]", "[9223372036854775807,3]"})
    CHECK(has(refuse(tensor("F32", shape, "[0,8]")), "do not fit"));
  for (const char* shape : {"[-2]", "[2.0]", "2", "[18446744073709551615]", "[\"2\"]", "null"})
    CHECK(has(refuse(tensor("F32", shape, "[0,8]")), "no sound"));
  for (const char* offsets : {"[0]", "[0,8,8]", "[-8,0]", "[0,18446744073709551615]", "{}"})
    CHECK(has(refuse(tensor("F32", "[2]", offsets)), "no sound"));
  CHECK(has(refuse(tensor("F32", "[2]", "[8,0]")), "do not fit"));
  CHECK(has(refuse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                       "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
            "overlaps"));
  CHECK(has(refuse("[]"), "not a JSON object"));
  CHECK(has(refuse(R"({"t":)"), "not a JSON object"));
  CHECK(has(refuse(std::string(100000, '[')), "not a JSON object"));
}

TEST_CASE("safetensors: no flipped byte of the header, no cut and no other file brings it down") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.safetensors";
  REQUIRE(write_safetensors(sample(), path));
  const std::string sound = read_text(path);
  const std::size_t data = 8 + 24 + 10;
  int refused = 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (std::size_t at = 0; at < sound.size() - data; ++at) {
    const auto put = [&](int byte) {
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
    };
    for (const int change : {0x01, 0x10, 0x80, 0xff}) {
      put(sound[at] ^ change);
      const std::string text = refusal(path);  // a changed name or metadata is still a sound file
      refused += !text.empty();
      if (at < 8) CHECK(has(text, path.string()));
    }
    put(sound[at]);
  }
  CHECK(refused > 1000);
  REQUIRE(refusal(path).empty());
  for (std::size_t size = sound.size(); size-- > 0;) {
    fs::resize_file(path, size);
    if (!has(refusal(path), path.string())) FAIL("a cut at " << size << " went unseen");
  }
  write_file(path, std::string(8, '\xff') + "{}");
  CHECK(has(refusal(path), "18446744073709551615 bytes"));
  CHECK(has(refusal(folder / "none.safetensors"), "No such file"));
  CHECK(has(refusal(folder.path()), "cannot be opened"));
}

TEST_CASE("safetensors: a crash at any moment leaves the old or the new file, and both can be read") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.safetensors";
  REQUIRE(write_safetensors(test::filled({{"a", "f32", {2, 3}}}), path));
  const std::string old = read_text(path);
  test::CrashDisk disk(folder.path());
  REQUIRE(write_safetensors(sample(), path));
  CHECK(disk.unsafe().empty());
  disk.each_crash([&](const fs::path& left, bool over, const std::string& when) {
    CAPTURE(when);
    const auto read = read_safetensors(left / "w.safetensors");
    REQUIRE_MESSAGE(read, read.error().text());
    CHECK((read->tensors.size() == 4 || (!over && read_text(left / "w.safetensors") == old)));
  });
}

TEST_CASE("safetensors: a full disk is an error that names the file") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w.safetensors";
  fs::create_symlink("/dev/full", path.string() + ".partial");
  const Status status = write_safetensors(sample(), path);
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), path.string()));
  CHECK_FALSE(fs::exists(path));
}
