// A tree of class folders, root/<class>/*.{JPEG,JPG,JPE}, as an index of paths and labels; blocks. Names are
// in byte order, symlinks are followed, hidden entries skipped; folders below a class folder are not
// descended into. Built for millions of files: a name costs its bytes plus five, and no file is opened or
// (unless a symlink) looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nodes/source/source.hpp"

namespace sluice {

struct FolderOptions {
  std::vector<std::string>
      exclude{};            // "class/file" or fnmatch patterns of that form; '*' does not match '/'
  std::size_t classes = 0;  // take so many classes, chosen by subset_seed; 0 = all
  std::uint64_t subset_seed = 0;
  std::size_t per_class = 0;  // the first so many of each class, after `exclude`; 0 = all
  // The training tree's classes, for a validation tree: they become its labels, and a missing one is an
  // error. So is a surplus one, unless `classes` takes a subset anyway (which then chooses nothing by
  // itself).
  std::vector<std::string> expect{};
};

class ImageFolder final : public Source {
 public:
  static Result<ImageFolder> scan(const std::string& root, const FolderOptions& options);

  [[nodiscard]] std::string path(std::size_t index) const;
  void path(std::size_t index, std::string& into) const;  // reuses its memory

  [[nodiscard]] std::size_t size() const override { return starts_.back(); }
  [[nodiscard]] int label(std::size_t index) const override;
  [[nodiscard]] std::string name(std::size_t index) const override { return path(index); }
  [[nodiscard]] std::optional<std::size_t> bytes(std::size_t) const override { return std::nullopt; }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return classes_; }
  [[nodiscard]] std::size_t index_bytes() const override;
  [[nodiscard]] Outcome fetch(std::size_t index, const ReadOptions& options, MakeRoom make_room,
                              const Stop& stop) const override;

 private:
  // The names of a class one after the other, each ended by a zero byte; offsets[i] is where name i begins.
  struct Files {
    std::vector<char> names;
    std::vector<std::uint32_t> offsets;
    bool pack(const std::vector<std::string>& list);  // false if they do not fit
  };

  std::string root_;
  std::vector<std::string> classes_;
  std::vector<Files> files_;               // one per class
  std::vector<std::size_t> starts_ = {0};  // index of each class's first image; the last entry is the total
};

}  // namespace sluice
