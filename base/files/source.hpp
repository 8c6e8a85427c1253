// A file to read weights from, with its size. The size is told by the file system, never by the content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace sluice {

class SourceFile {
 public:
  // `stage` names the caller in errors. Takes regular files only.
  [[nodiscard]] static Result<SourceFile> open(const std::string& stage, const std::filesystem::path& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // So many bytes from `offset` on; false, with errno, if there are fewer or they cannot be read.
  [[nodiscard]] bool read(std::uint64_t offset, void* to, std::size_t bytes) const;
  // The next so many bytes.
  [[nodiscard]] bool get(void* to, std::size_t bytes) {
    if (!read(at_, to, bytes)) return false;
    at_ += bytes;
    return true;
  }

 private:
  SourceFile(std::unique_ptr<Descriptor> file, std::uint64_t size) : file_(std::move(file)), size_(size) {}
  std::unique_ptr<Descriptor> file_;
  std::uint64_t size_, at_ = 0;
};

}  // namespace sluice
