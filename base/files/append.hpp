// A file that only grows, piece by piece. Each piece is handed to the system before append returns; one that
// could not be written whole is taken back, so that a full disk never leaves a torn piece behind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sluice {

class AppendFile {
 public:
  // Made if there is none.
  [[nodiscard]] static Result<std::shared_ptr<AppendFile>> open(const std::string& path);

  AppendFile(std::string path, int descriptor, bool regular)
      : path_(std::move(path)), descriptor_(descriptor), regular_(regular) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  Status append(std::string_view piece);
  Status sync();  // all that was appended has reached the disk, and so has the file's name
  // That the file is still the one of this name, and as long as it was left: what is appended to one that was
  // removed, replaced or cut by somebody else is lost in silence.
  [[nodiscard]] Status still_there() const;
  Status cut_torn_line();  // takes off what follows the last end of line

 private:
  [[nodiscard]] Error failure(const char* what) const;
  void take_back(std::size_t bytes) const;

  std::string path_;
  int descriptor_;
  bool regular_;  // no device
  bool name_synced_ = false;
  std::int64_t least_ = 0;  // bytes that the file has at least
};

}  // namespace sluice
