#include "model/weights/checkpoint_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <system_error>

#include "base/bounded_json.hpp"
#include "base/checksum.hpp"
#include "base/files/durable.hpp"
#include "base/files/source.hpp"
#include "base/printable.hpp"
#include "model/network/shape.hpp"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr std::string_view magic = "SLUICECK";
constexpr int version = 1;
constexpr std::size_t alignment = 64;
constexpr std::size_t sum_size = sizeof(std::uint64_t);
constexpr std::uint64_t longest_header = 64 << 20;  // it holds the run's configuration

struct Prefix {
  char magic[8];
  std::uint64_t file_size;
  std::uint64_t header_size;
};
static_assert(sizeof(Prefix) == 24);

constexpr std::size_t aligned(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }

Error refusal(const std::filesystem::path& path, const std::string& cause,
              std::string hint = "take another checkpoint") {
  return Error{"checkpoint", path.string(), printable(cause), std::move(hint)};
}

std::string header_of(const Snapshot& snapshot) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const StoredTensor& tensor : snapshot.tensors)
    tensors.push_back(
        {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"offset", tensor.offset}});
  const nlohmann::json header = {{"version", version},
                                 {"arch", snapshot.arch},
                                 {"classes", snapshot.classes},
                                 {"state", snapshot.state},
                                 {"tensors", std::move(tensors)}};
  // Text that is not UTF-8 (a path, say) must not make a save fail.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(aligned(sizeof(Prefix) + text.size()) - sizeof(Prefix), ' ');
  return text;
}

// What the tensors of a network, its optimiser and its averages can take, with room to spare.
std::uint64_t most_bytes(const std::string& arch, std::int64_t classes) {
  constexpr std::int64_t other = 64 << 20, most_classes = 10'000'000, copies = 4, widest = 8;
  const ResNetKind* kind = resnet_kind(arch);
  if (kind == nullptr || classes < 0 || classes > most_classes) return other;
  const NetworkShape shape = network_shape(*kind);
  const auto needed = static_cast<std::uint64_t>(
      other + copies * widest * (shape.parameters(classes) + shape.statistics() + shape.norms()));
  return std::min(needed, most_weights);
}

// Fills the snapshot's entries from the header, before anything vouches for it. The tensors follow each other
// and end where the data does.
Status take_header(const nlohmann::json& header, const std::filesystem::path& path, std::uint64_t data_size,
                   Snapshot& snapshot) {
  try {
    snapshot.arch = header.at("arch");
    if (snapshot.arch.size() > longest_name) return refusal(path, "damaged: its header tells no network");
    snapshot.classes = header.at("classes");
    snapshot.state = header.at("state");
    if (header.at("tensors").size() > most_tensors)
      return refusal(path, "damaged: its header tells of too many tensors");
    std::uint64_t end = 0;
    for (const nlohmann::json& entry : header.at("tensors")) {
      StoredTensor tensor{entry.at("name"), entry.at("dtype"), entry.at("shape"), entry.at("offset"), 0};
      const auto size = tensor_size(tensor.dtype, tensor.shape);
      if (tensor.name.size() > longest_name)
        return refusal(path,
                       "damaged: its header has a name of " + std::to_string(tensor.name.size()) + " bytes");
      if (!size || tensor.offset < end || tensor.offset > data_size || *size > data_size - tensor.offset)
        return refusal(path, "its tensor " + tensor.name + " has an impossible type, shape or place");
      tensor.bytes = *size;
      end = tensor.offset + *size;
      snapshot.tensors.push_back(std::move(tensor));
    }
    if (end != data_size)
      return refusal(path, "damaged: has " + std::to_string(data_size) +
                               " bytes of tensors, its header tells of " + std::to_string(end));
    if (data_size > most_bytes(snapshot.arch, snapshot.classes))
      return refusal(path, "damaged: has " + std::to_string(data_size) + " bytes of tensors, more than " +
                               snapshot.arch + " with " + std::to_string(snapshot.classes) +
                               " classes can need");
  } catch (const nlohmann::json::exception& error) {
    return refusal(path, std::string("its header cannot be read: ") + error.what());
  }
  return Done{};
}

// How the header tells of another network than the caller's; empty if it does not.
std::string other_network(const Snapshot& snapshot, const Expected& expected) {
  const auto was = [](const char* what, const auto& then, const auto& now) {
    return std::string(what) + " was " + nlohmann::json(then).dump() + " and is now " +
           nlohmann::json(now).dump();
  };
  if (!expected.arch.empty() && snapshot.arch != expected.arch)
    return was("arch", snapshot.arch, expected.arch);
  if (expected.classes != 0 && snapshot.classes != expected.classes)
    return was("classes", snapshot.classes, expected.classes);
  return "";
}

// Through the whole file in small pieces; nothing if it cannot be read.
std::optional<std::uint64_t> checksum_of(const SourceFile& file) {
  Checksum sum;
  std::vector<std::byte> piece(1 << 20);
  for (std::uint64_t at = 0, end = file.size() - sum_size; at < end; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), end - at));
    if (!file.read(at, piece.data(), piece.size())) return std::nullopt;
    sum.add(piece);
  }
  return sum.value();
}

}  // namespace

std::size_t dtype_size(std::string_view dtype) {
  if (dtype == "f64" || dtype == "i64") return 8;
  if (dtype == "f32" || dtype == "i32") return 4;
  if (dtype == "f16" || dtype == "bf16") return 2;
  return 0;
}

std::optional<std::size_t> tensor_size(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  std::size_t size = dtype_size(dtype);
  if (size == 0 || shape.size() > most_dimensions) return {};
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(size, static_cast<std::size_t>(extent), &size)) return {};
  return size;
}

std::size_t Snapshot::room_for(std::size_t bytes) { return aligned(bytes); }

std::span<std::byte> Snapshot::add(std::string name, std::string dtype, std::vector<std::int64_t> shape) {
  const std::size_t size = tensor_size(dtype, shape).value_or(0);
  const std::size_t offset = aligned(data.size());
  data.resize(offset + size);
  tensors.push_back({std::move(name), std::move(dtype), std::move(shape), offset, size});
  return std::span(data).subspan(offset, size);
}

const StoredTensor* Snapshot::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &StoredTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::span<const std::byte> Snapshot::bytes(const StoredTensor& tensor) const {
  return std::span(data).subspan(tensor.offset, tensor.bytes);
}

void Snapshot::clear_tensors() {
  tensors.clear();
  data.clear();
}

Status write_checkpoint(const Snapshot& snapshot, const std::filesystem::path& path) {
  const std::string header = header_of(snapshot);
  Prefix prefix{};
  std::copy(magic.begin(), magic.end(), prefix.magic);
  prefix.header_size = header.size();
  prefix.file_size = sizeof prefix + header.size() + snapshot.data.size() + sum_size;
  Checksum sum;
  std::array<std::span<const std::byte>, 4> parts{
      std::as_bytes(std::span(&prefix, 1)), std::as_bytes(std::span(header)), std::span(snapshot.data), {}};
  for (const auto& part : parts) sum.add(part);
  const std::uint64_t value = sum.value();
  parts[3] = std::as_bytes(std::span(&value, 1));
  return replace_file("checkpoint", path, parts);
}

namespace {

Result<Snapshot> read(const std::filesystem::path& path, const Expected& expected, bool* damaged) {
  const auto tell = [&](bool is) {
    if (damaged != nullptr) *damaged = is;
  };
  tell(false);
  Result<SourceFile> file = SourceFile::open("checkpoint", path);
  if (!file) return file.error();
  const std::uint64_t size = file->size();
  tell(true);
  const auto unread = [&](const char* what) {  // a disk's error says nothing of the content
    tell(false);
    return refusal(path, what + (": " + std::generic_category().message(errno)));
  };
  Prefix prefix{};
  if (size < sizeof prefix + sum_size)
    return refusal(path, "too short to be a checkpoint (" + std::to_string(size) + " bytes)");
  if (!file->get(&prefix, sizeof prefix)) return unread("cannot be read");
  if (std::string_view(prefix.magic, sizeof prefix.magic) != magic)
    return refusal(path, "not a checkpoint of this program, or damaged at its beginning");
  if (prefix.file_size != size)
    return refusal(path, std::string(size < prefix.file_size ? "too short" : "too long") + ": has " +
                             std::to_string(size) + " bytes, was written with " +
                             std::to_string(prefix.file_size));
  if (prefix.header_size > size - sizeof prefix - sum_size)
    return refusal(path, "damaged: its header would be longer than the file");

  if (prefix.header_size > longest_header)
    return refusal(path, "damaged: its header would have " + std::to_string(prefix.header_size) + " bytes");
  const auto cut = [&] { return unread("cannot be read to its end"); };
  std::string text(prefix.header_size, '\0');
  std::uint64_t stored = 0;
  if (!file->get(text.data(), text.size()) || !file->read(size - sum_size, &stored, sum_size)) return cut();
  const auto wrong_sum = [&] { return refusal(path, "damaged: the checksum does not fit its content"); };
  // For a file that is not taken: whether that is what was written, told without holding its content. One
  // that is larger than any checkpoint is not read for it.
  const auto other = [&](const std::string& cause, const std::string& hint, std::uint64_t most) {
    if (size <= most) {
      const std::optional<std::uint64_t> sum = checksum_of(*file);
      if (!sum) return cut();
      if (*sum != stored) return wrong_sum();
    }
    tell(false);
    return refusal(path, cause, hint);
  };
  const nlohmann::json header = parse_object(text);
  if (header.is_discarded()) return refusal(path, "damaged: its header cannot be read");
  if (const auto found = header.find("version"); found == header.end() || *found != version) {
    const bool told = found != header.end() && found->is_number_integer();
    return other("its header tells format version " +
                     (told ? std::to_string(found->get<std::int64_t>()) : "of another kind") +
                     ", this program reads version " + std::to_string(version),
                 "use the program that wrote it", most_weights);
  }
  Snapshot snapshot;
  const std::uint64_t data_size = size - sizeof prefix - text.size() - sum_size;
  if (Status taken = take_header(header, path, data_size, snapshot); !taken) return taken.error();
  if (const std::string cause = other_network(snapshot, expected); !cause.empty())
    return other(cause, "take the configuration it was made with",
                 most_bytes(expected.arch.empty() ? snapshot.arch : expected.arch, expected.classes));
  if (Status fits = fits_memory("checkpoint", path, data_size, expected.memory); !fits) {
    tell(false);
    return fits.error();
  }
  snapshot.data.resize(data_size);
  if (!file->get(snapshot.data.data(), snapshot.data.size())) return cut();
  Checksum sum;
  sum.add(std::as_bytes(std::span(&prefix, 1)));
  sum.add(std::as_bytes(std::span(text)));
  sum.add(snapshot.data);
  if (sum.value() != stored) return wrong_sum();
  tell(false);
  snapshot.source = path.string();
  return snapshot;
}

}  // namespace

Result<Snapshot> read_checkpoint(const std::filesystem::path& path, const Expected& expected, bool* damaged) {
  try {
    return read(path, expected, damaged);
  } catch (const std::bad_alloc&) {
    if (damaged != nullptr) *damaged = false;
    return no_memory("checkpoint", path);
  } catch (const std::exception& error) {
    return refusal(path, error.what());
  }
}

}  // namespace sluice
