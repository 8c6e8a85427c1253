// A file to read weights from, with its size. The size is told by the file system, never by the content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "graph/result.hpp"

namespace sluice {

class SourceFile {
 public:
  // `stage` names the caller in errors.
  [[nodiscard]] static Result<SourceFile> open(const std::string& stage, const std::filesystem::path& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // The next so many bytes; false if there are fewer, or they cannot be read.
  [[nodiscard]] bool get(void* to, std::size_t bytes) {
    return static_cast<bool>(stream_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
  }
  [[nodiscard]] std::ifstream& stream() { return stream_; }

 private:
  SourceFile(std::ifstream stream, std::uint64_t size) : stream_(std::move(stream)), size_(size) {}
  std::ifstream stream_;
  std::uint64_t size_;
};

}  // namespace sluice
