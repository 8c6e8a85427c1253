// A checkpoint as one file: named tensors and a free JSON object, with a checksum over everything. Knows
// nothing of torch: tensors are bytes with a type and a shape.
//
//   "SLUICECK" | file size, u64 | header size, u64 | header (JSON) | tensors, each at a multiple of 64 |
//   checksum, u64
//
// The header is {"version", "arch", "classes", "state", "tensors": [{"name", "dtype", "shape", "offset"}]},
// with offsets from the start of the tensors. Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/weights/limits.hpp"

namespace sluice {

struct StoredTensor {
  std::string name;
  std::string dtype;  // "f32", "f16", "bf16", "f64", "i32", "i64"
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  // into Snapshot::data
  std::size_t bytes = 0;
};

struct Snapshot {
  std::string arch;
  std::int64_t classes = 0;
  nlohmann::json state =
      nlohmann::json::object();  // the caller's: epoch, phase, batch, metric sums, versions, ...
  std::vector<StoredTensor> tensors;
  std::vector<std::byte> data;
  std::string source;  // the file it was read from; empty if it was not

  // Appends a tensor's entry and the room for it. Whoever knows what is to come reserves `data` first, so
  // much for each tensor: growing piece by piece would hold everything twice for a moment.
  [[nodiscard]] static std::size_t room_for(std::size_t bytes);
  std::span<std::byte> add(std::string name, std::string dtype, std::vector<std::int64_t> shape);
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  [[nodiscard]] std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  void clear_tensors();  // keeps the memory, for the next copy
};

// Bytes per value; 0 for a type that is not known.
[[nodiscard]] std::size_t dtype_size(std::string_view dtype);
// Bytes of a tensor; nothing where type, shape or product make no sense.
[[nodiscard]] std::optional<std::size_t> tensor_size(std::string_view dtype,
                                                     const std::vector<std::int64_t>& shape);

// What the caller knows of the file before it reads it.
struct Expected {
  std::string arch = {};     // empty: any network
  std::int64_t classes = 0;  // 0: any number of them
  std::uint64_t memory = memory_for_weights();
};

Status write_checkpoint(const Snapshot& snapshot, const std::filesystem::path& path);
// Refuses a file that is cut off, changed in any bit, or of another format, and tells which. `damaged` tells
// whether the content is to blame: not so where the file cannot be read, or is of another version. The header
// is judged first: what it tells of must be the rest of the file, no more than its network can need, and fit
// into the memory; only then room is made for it.
Result<Snapshot> read_checkpoint(const std::filesystem::path& path, const Expected& expected = {},
                                 bool* damaged = nullptr);

}  // namespace sluice
