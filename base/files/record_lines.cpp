#include "base/files/record_lines.hpp"

#include <cstring>

namespace sluice {
namespace fs = std::filesystem;

RecordLines::RecordLines(std::string stage, const fs::path& file)
    : stage_(std::move(stage)), path_(file.string()), in_(path_) {}

Result<std::unique_ptr<RecordLines>> RecordLines::open(const std::string& stage, const fs::path& file) {
  std::unique_ptr<RecordLines> lines(new RecordLines(stage, file));
  if (lines->in_.opened()) return lines;
  std::error_code ignored;
  if (fs::symlink_status(file, ignored).type() == fs::file_type::not_found)
    return std::unique_ptr<RecordLines>();
  return Error{stage, lines->path_, lines->in_.cause(), "remove it, or start anew under another log.name"};
}

Result<bool> RecordLines::next(std::string& line) {
  in_.getline(room_.data(), static_cast<std::streamsize>(room_.size()));
  if (in_.read_error() != 0) return Error{stage_, path_, std::strerror(in_.read_error()), "check the disk"};
  if (in_.eof()) return false;
  ++lines_;
  if (!in_)
    return Error{stage_, path_, "its line " + std::to_string(lines_) + " is longer than 1 MiB, no record",
                 "remove that line, or start anew under another log.name"};
  line.assign(room_.data(), static_cast<std::size_t>(in_.gcount()) - 1);
  return true;
}

}  // namespace sluice
