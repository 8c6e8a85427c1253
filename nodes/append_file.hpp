// A file that only grows, piece by piece. Each piece is handed to the system before append returns; one that
// could not be written whole is taken back, so that a full disk never leaves a torn piece behind.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graph/result.hpp"

namespace sluice {

class AppendFile {
 public:
  // Made if there is none.
  [[nodiscard]] static Result<std::shared_ptr<AppendFile>> open(const std::string& path);

  AppendFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  Status append(std::string_view piece);
  Status sync();           // all that was appended has reached the disk, and so has the file's name
  Status cut_torn_line();  // takes off what follows the last end of line

 private:
  [[nodiscard]] Error failure(const char* what) const;
  void take_back(std::size_t bytes) const;

  std::string path_;
  int descriptor_;
  bool name_synced_ = false;
};

}  // namespace sluice
