#include "model/weights/torch_file.hpp"

#include <cerrno>
#include <map>
#include <system_error>
#include "base/printable.hpp"

#include "base/files/durable.hpp"
#include "base/files/source.hpp"
#include "model/weights/state_dict.hpp"
#include "model/weights/zip_file.hpp"

namespace sluice {
namespace {

constexpr std::size_t longest_pickle = 16 << 20;
constexpr std::size_t most_growth = 8;  // names may share a storage, but not all of them

Error refusal(const std::filesystem::path& path, const std::string& cause,
              std::string hint = "save model.state_dict() with torch.save") {
  return Error{"weights", path.string(), printable(cause), std::move(hint)};
}

// The entries of a zip file, which lie in one folder of any name.
class Archive {
 public:
  Archive(const SourceFile& file, std::map<std::string, ZipEntry> entries)
      : file_(file), entries_(std::move(entries)) {
    for (const auto& [name, entry] : entries_)
      if (const std::size_t slash = name.find('/'); name.substr(slash + 1) == "data.pkl")
        folder_ = name.substr(0, slash + 1);
  }

  [[nodiscard]] bool has(const std::string& name) const { return entries_.contains(folder_ + name); }
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name, std::size_t limit) const {
    const auto found = entries_.find(folder_ + name);
    if (found == entries_.end()) return refusal("", "has no entry " + name, "save it again");
    const auto [offset, size] = found->second;
    if (size > limit)
      return refusal("", "its entry " + name + " tells of " + std::to_string(size) + " bytes",
                     "save model.state_dict() alone");
    std::vector<std::byte> bytes(size);
    if (!file_.read(offset, bytes.data(), size))
      return refusal("", "its entry " + name + " cannot be read: " + std::generic_category().message(errno),
                     "");
    return bytes;
  }

 private:
  const SourceFile& file_;
  std::map<std::string, ZipEntry> entries_;
  std::string folder_;
};

Result<Snapshot> read(const std::filesystem::path& path, std::uint64_t memory) {
  const Result<SourceFile> source = SourceFile::open("weights", path);
  if (!source) return source.error();
  const std::uint64_t size = source->size();
  char start[2] = {};
  if (size < 2 || !source->read(0, start, 2) || start[0] != 'P' || start[1] != 'K')
    return refusal(path, "not a zip file, which torch.save writes since version 1.6");

  auto entries = read_zip_directory(*source);
  if (!entries) return entries.error();
  const Archive file(*source, std::move(*entries));
  if (file.has("byteorder")) {
    const auto order = file.read("byteorder", 16);
    if (!order) return order.error();
    if (!order->empty() && order->front() != std::byte{'l'}) return refusal(path, "is not little-endian");
  }
  const auto text = file.read("data.pkl", longest_pickle);
  if (!text) return text.error();
  const auto pickle = read_pickle(*text);
  if (!pickle) return pickle.error();
  const auto tensors = find_tensors(*pickle->root);
  if (!tensors) return tensors.error();
  const auto storage = [&](const std::string& key, std::size_t bytes) {
    return file.read("data/" + key, bytes);
  };
  Result<Snapshot> weights = gather(*tensors, storage, std::min(most_growth * size, memory));
  if (weights) weights->source = path.string();
  return weights;
}

}  // namespace

Result<Snapshot> read_torch_file(const std::filesystem::path& path, std::uint64_t memory) {
  try {
    Result<Snapshot> result = read(path, memory);
    if (!result && result.error().subject.empty()) result.error().subject = path.string();
    return result;
  } catch (const std::bad_alloc&) {
    return no_memory("weights", path);
  } catch (const std::exception& error) {
    return refusal(path, error.what());
  }
}

}  // namespace sluice
