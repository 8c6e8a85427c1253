#include "model/weights/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/bounded_json.hpp"
#include "base/files/durable.hpp"
#include "base/files/source.hpp"
#include "base/printable.hpp"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::uint64_t longest_header = 16 << 20;  // thousands of times what a network needs
struct Type {
  std::string_view ours, theirs;
};
constexpr Type types[] = {{"f32", "F32"}, {"f16", "F16"}, {"bf16", "BF16"},
                          {"f64", "F64"}, {"i32", "I32"}, {"i64", "I64"}};

Error refusal(const std::filesystem::path& path, const std::string& cause,
              const std::string& hint = "export it again") {
  return Error{"weights", path.string(), printable(cause), printable(hint)};
}

// Large types first, so that every tensor lies at a multiple of its type's size.
std::vector<const StoredTensor*> in_file_order(const Snapshot& weights) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : weights.tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::greater{},
                           [](const StoredTensor* tensor) { return dtype_size(tensor->dtype); });
  return order;
}

std::string header_of(const Snapshot& weights, const std::vector<const StoredTensor*>& order) {
  nlohmann::json header = nlohmann::json::object();
  nlohmann::json& metadata = header["__metadata__"] = {{"format", "pt"}};  // values must be text
  if (!weights.arch.empty()) metadata["arch"] = weights.arch;
  if (weights.classes > 0) metadata["classes"] = std::to_string(weights.classes);
  std::size_t begin = 0;
  for (const StoredTensor* tensor : order) {
    const auto type = std::ranges::find(types, tensor->dtype, &Type::ours);
    header[tensor->name] = {
        {"dtype", type->theirs}, {"shape", tensor->shape}, {"data_offsets", {begin, begin + tensor->bytes}}};
    begin += tensor->bytes;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

struct Entry {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

// Numbers of JSON that are whole and not negative; anything else (1.5, -1, "1") makes no sense here.
bool take_numbers(const nlohmann::json& from, auto& into) {
  if (!from.is_array()) return false;
  for (const nlohmann::json& number : from) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX) return false;
    into.push_back(number.get<std::int64_t>());
  }
  return true;
}

Result<Entry> take_entry(const std::filesystem::path& path, const std::string& name,
                         const nlohmann::json& from) {
  if (name.size() > longest_name)
    return refusal(path, "holds a name of " + std::to_string(name.size()) + " bytes");
  const auto refuse = [&](const std::string& cause, const std::string& hint = "export it again") {
    return refusal(path, "its tensor " + name + " " + cause, hint);
  };
  Entry entry{name, {}, {}, 0, 0};
  std::vector<std::int64_t> offsets;
  if (!from.is_object() || !from.contains("dtype") || !from["dtype"].is_string() || !from.contains("shape") ||
      !take_numbers(from["shape"], entry.shape) || !from.contains("data_offsets") ||
      !take_numbers(from["data_offsets"], offsets) || offsets.size() != 2)
    return refuse("has no sound dtype, shape and data_offsets");
  const auto& dtype = from["dtype"].get_ref<const std::string&>();
  const auto type = std::ranges::find(types, dtype, &Type::theirs);
  if (type == std::end(types)) return refuse("has type " + dtype, "save it as F32, F16 or BF16");
  entry.dtype = type->ours;
  entry.begin = static_cast<std::uint64_t>(offsets[0]);
  entry.end = static_cast<std::uint64_t>(offsets[1]);
  const auto size = tensor_size(entry.dtype, entry.shape);
  if (!size || entry.end < entry.begin || entry.end - entry.begin != *size)
    return refuse("has a shape and a place in the file that do not fit");
  return entry;
}

void take_metadata(const nlohmann::json& from, Snapshot& into) {
  if (!from.is_object()) return;
  if (const auto arch = from.find("arch"); arch != from.end() && arch->is_string()) into.arch = *arch;
  if (const auto classes = from.find("classes"); classes != from.end() && classes->is_string()) {
    const auto& text = classes->get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), into.classes);
  }
}

// The tensors in the order of their bytes, known to cover the data exactly once.
Result<std::vector<Entry>> take_header(const std::filesystem::path& path, const std::string& text,
                                       std::uint64_t data_size, Snapshot& into) {
  const nlohmann::json header = parse_object(text);
  if (!header.is_object())
    return refusal(path, "its header is not a JSON object: damaged, or another format");
  if (header.size() > most_tensors + 1)  // and metadata
    return refusal(path, "holds more than " + std::to_string(most_tensors) + " tensors");
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      take_metadata(value, into);
      continue;
    }
    Result<Entry> entry = take_entry(path, name, value);
    if (!entry) return entry.error();
    entries.push_back(std::move(*entry));
  }
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end)
      return refusal(path, "its tensor " + entry.name +
                               (entry.begin < end ? " overlaps" : " leaves a gap to") + " the one before it");
    end = entry.end;
  }
  if (end != data_size)
    return refusal(path, std::string(end > data_size ? "too short" : "too long") + ": has " +
                             std::to_string(data_size) + " bytes of tensors, its header tells of " +
                             std::to_string(end));
  return entries;
}

Result<Snapshot> read(const std::filesystem::path& path, std::uint64_t memory) {
  Result<SourceFile> file = SourceFile::open("weights", path);
  if (!file) return file.error();
  const std::uint64_t size = file->size();
  std::uint64_t header_size = 0;
  if (size < sizeof header_size || !file->get(&header_size, sizeof header_size))
    return refusal(path, "too short for a safetensors file (" + std::to_string(size) + " bytes)");
  if (header_size > std::min<std::uint64_t>(size - sizeof header_size, longest_header))
    return refusal(path, "not a safetensors file, or cut off: its header would have " +
                             std::to_string(header_size) + " bytes");
  const auto cut = [&] {
    return refusal(path, "cannot be read to its end: " + std::generic_category().message(errno));
  };
  std::string header(header_size, '\0');
  if (!file->get(header.data(), header.size())) return cut();
  Snapshot weights;
  weights.source = path.string();
  auto entries = take_header(path, header, size - sizeof header_size - header_size, weights);
  if (!entries) return entries.error();
  std::uint64_t total = 0;
  for (const Entry& entry : *entries) total += Snapshot::room_for(entry.end - entry.begin);
  if (const Status fits = fits_memory("weights", path, total, memory); !fits) return fits.error();
  weights.data.reserve(total);
  for (Entry& entry : *entries) {
    const auto room = weights.add(std::move(entry.name), std::move(entry.dtype), std::move(entry.shape));
    if (!file->get(room.data(), room.size())) return cut();
  }
  return weights;
}

}  // namespace

Status write_safetensors(const Snapshot& weights, const std::filesystem::path& path) {
  for (const StoredTensor& tensor : weights.tensors)
    if (dtype_size(tensor.dtype) == 0)
      return refusal(path, "cannot hold " + tensor.name + " of type " + tensor.dtype, "");
  const auto order = in_file_order(weights);
  const std::string header = header_of(weights, order);
  const std::uint64_t header_size = header.size();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&header_size, 1)),
                                                std::as_bytes(std::span(header))};
  for (const StoredTensor* tensor : order) parts.push_back(weights.bytes(*tensor));
  return write_output("weights", path, parts);
}

Result<Snapshot> read_safetensors(const std::filesystem::path& path, std::uint64_t memory) {
  try {
    return read(path, memory);
  } catch (const std::bad_alloc&) {
    return no_memory("weights", path);
  } catch (const std::exception& error) {
    return refusal(path, error.what());
  }
}

}  // namespace sluice
