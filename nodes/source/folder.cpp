#include "nodes/source/folder.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "base/random.hpp"
#include "nodes/source/listing.hpp"

namespace sluice {
namespace {

std::string ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  std::string text(dot == std::string_view::npos ? std::string_view() : name.substr(dot));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_image(std::string_view name) {
  const std::string end = ending(name);
  return end == ".jpeg" || end == ".jpg" || end == ".jpe";
}

// "a, b, c and 5 more"
std::string a_few(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i ? ", " : "") + printable(names[i]);
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

class Exclusion {
 public:
  explicit Exclusion(const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      exact_.insert(entry);
      if (entry.find_first_of("*?[\\") != std::string::npos) patterns_.push_back(entry);
    }
  }
  [[nodiscard]] bool covers(const std::string& relative) const {
    return exact_.contains(relative) || std::ranges::any_of(patterns_, [&](const std::string& pattern) {
             return fnmatch(pattern.c_str(), relative.c_str(), FNM_PATHNAME) == 0;
           });
  }

 private:
  std::set<std::string> exact_;
  std::vector<std::string> patterns_;
};

std::vector<std::string> choose(std::vector<std::string> names, std::size_t count, std::uint64_t seed) {
  Random random(seed, 0, 0, Purpose::order);
  for (std::size_t i = 0; i < count; ++i)
    std::swap(names[i], names[i + random.below(static_cast<std::uint32_t>(names.size() - i))]);
  names.resize(count);
  std::ranges::sort(names);
  return names;
}

// The class names that become labels, in order.
Result<std::vector<std::string>> select_classes(const std::string& root, Listing listing,
                                                const FolderOptions& options) {
  std::vector<std::string>& found = listing.folders;
  if (found.empty()) {
    const bool images = std::ranges::any_of(listing.files, is_image);
    return Error{"data", root, images ? "no class folders, but images directly in it" : "no class folders",
                 images ? "put each class's images into a folder of its own below it"
                        : "expected <class>/<image>.JPEG below it"};
  }
  if (!options.expect.empty()) {
    std::vector<std::string> expected = options.expect, missing, surplus;
    std::ranges::sort(expected);
    std::ranges::set_difference(expected, found, std::back_inserter(missing));
    std::ranges::set_difference(found, expected, std::back_inserter(surplus));
    if (options.classes != 0) surplus.clear();
    if (missing.empty() && surplus.empty()) return options.expect;
    std::string cause = "its classes are not those of the training tree";
    if (!missing.empty()) cause += "; missing (" + std::to_string(missing.size()) + "): " + a_few(missing);
    if (!surplus.empty()) cause += "; surplus (" + std::to_string(surplus.size()) + "): " + a_few(surplus);
    return Error{"data", root, std::move(cause), "data.train and data.val need the same class folders"};
  }
  if (options.classes > found.size())
    return Error{"data", root,
                 "data.classes asks for " + std::to_string(options.classes) + " classes, there are " +
                     std::to_string(found.size()),
                 "lower data.classes"};
  if (options.classes != 0) return choose(std::move(found), options.classes, options.subset_seed);
  return std::move(found);
}

Error no_images(const std::string& root, const std::map<std::string, std::size_t>& endings) {
  std::vector<std::string> found;
  for (const auto& [end, count] : endings)
    found.push_back((end.empty() ? "no ending" : end) + " (" + std::to_string(count) + ")");
  return {"data", root,
          "no images in any class folder; " + (found.empty() ? "they are empty" : "found: " + a_few(found)),
          "images end in .JPEG, .JPG or .JPE, upper or lower case"};
}

}  // namespace

bool ImageFolder::Files::pack(const std::vector<std::string>& list) {
  std::size_t bytes = 0;
  for (const std::string& name : list) bytes += name.size() + 1;
  if (bytes > std::numeric_limits<std::uint32_t>::max()) return false;
  names.reserve(bytes);
  offsets.reserve(list.size());
  for (const std::string& name : list) {
    offsets.push_back(static_cast<std::uint32_t>(names.size()));
    names.insert(names.end(), name.c_str(), name.c_str() + name.size() + 1);
  }
  return true;
}

Result<ImageFolder> ImageFolder::scan(const std::string& root, const FolderOptions& options) {
  for (const std::string& entry : options.exclude)
    if (entry.find('/') == std::string::npos)
      return Error{"config", "data.exclude", "\"" + printable(entry) + "\" names no file",
                   "entries have the form class/file"};
  Result<Listing> top = list_directory(root);
  if (!top) return std::move(top.error());
  Result<std::vector<std::string>> classes = select_classes(root, std::move(*top), options);
  if (!classes) return std::move(classes.error());

  const Exclusion exclusion(options.exclude);
  ImageFolder folder;
  folder.root_ = root;
  folder.classes_ = std::move(*classes);
  folder.classes_.shrink_to_fit();
  folder.files_.reserve(folder.classes_.size());
  folder.starts_.reserve(folder.classes_.size() + 1);
  std::map<std::string, std::size_t> other_endings;
  std::vector<std::string> empty;
  for (const std::string& name : folder.classes_) {
    Result<Listing> listing = list_directory(root + "/" + name);
    if (!listing) return std::move(listing.error());
    std::vector<std::string>& names = listing->files;
    std::erase_if(names, [&](const std::string& file) {
      if (is_image(file)) return false;
      ++other_endings[ending(file)];
      return true;
    });
    if (names.empty()) empty.push_back(name);
    std::erase_if(names, [&](const std::string& file) { return exclusion.covers(name + "/" + file); });
    if (options.per_class != 0 && names.size() > options.per_class) names.resize(options.per_class);
    if (!folder.files_.emplace_back().pack(names))
      return Error{"data", root + "/" + name, "more than 4 GiB of file names", "split the class"};
    folder.starts_.push_back(folder.starts_.back() + names.size());
  }
  if (empty.size() == folder.classes_.size()) return no_images(root, other_endings);
  if (!empty.empty())
    return Error{"data", root, "class folders without images: " + a_few(empty), "fill or remove them"};
  if (folder.size() == 0)
    return Error{"data", root, "data.exclude leaves no image", "remove entries from data.exclude"};
  return folder;
}

int ImageFolder::label(std::size_t index) const {
  return static_cast<int>(std::ranges::upper_bound(starts_, index) - starts_.begin()) - 1;
}

std::string ImageFolder::path(std::size_t index) const {
  std::string text;
  path(index, text);
  return text;
}

void ImageFolder::path(std::size_t index, std::string& into) const {
  const auto at = static_cast<std::size_t>(label(index));
  const Files& files = files_[at];
  into.assign(root_).append("/").append(classes_[at]).append("/");
  into.append(&files.names[files.offsets[index - starts_[at]]]);
}

Outcome ImageFolder::fetch(std::size_t index, const ReadOptions& options, MakeRoom make_room,
                           const Stop& stop) const {
  thread_local std::string file;
  path(index, file);
  return read_file(file, options, make_room, stop);
}

std::size_t ImageFolder::index_bytes() const {
  const auto heap = [](const std::string& text) {
    return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
  };
  std::size_t bytes = sizeof(*this) + heap(root_) + classes_.capacity() * sizeof(std::string) +
                      files_.capacity() * sizeof(Files) + starts_.capacity() * sizeof(std::size_t);
  for (const std::string& name : classes_) bytes += heap(name);
  for (const Files& files : files_)
    bytes += files.names.capacity() + files.offsets.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace sluice
