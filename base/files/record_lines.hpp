// Reads a file of records (metrics.jsonl, quarantine.jsonl) line by line. Such a file lies in a folder that
// others may write to, and a crash of the machine may leave a hole in it: no line is ever taken whole into
// memory that is longer than any record.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/regular.hpp"
#include "base/result.hpp"

namespace sluice {

class RecordLines {
 public:
  static constexpr std::size_t longest = 1 << 20;  // bytes of a line; records have some hundreds

  // Nothing if there is no such file. One that cannot be opened, or a link to nowhere, is an error and not an
  // empty file. `stage` names the caller in errors.
  [[nodiscard]] static Result<std::unique_ptr<RecordLines>> open(const std::string& stage,
                                                                 const std::filesystem::path& file);

  // The next line, without its end; false once there is none. What follows the last end of line is no line.
  [[nodiscard]] Result<bool> next(std::string& line);

 private:
  RecordLines(std::string stage, const std::filesystem::path& file);

  std::string stage_, path_;
  InputFile in_;
  std::vector<char> room_ = std::vector<char>(longest + 1);
  std::size_t lines_ = 0;
};

}  // namespace sluice
