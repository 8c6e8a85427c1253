#include "base/files/line.hpp"

namespace sluice {

Result<std::shared_ptr<AppendFile>> open_lines(const std::string& path) {
  Result<std::shared_ptr<AppendFile>> file = AppendFile::open(path);
  if (!file) return file;
  if (Status cut = (*file)->cut_torn_line(); !cut) return cut.error();
  return file;
}

LineSink lines_into(std::shared_ptr<AppendFile> file) {
  return [file = std::move(file)](std::string_view line) {
    std::string text(line);
    text += '\n';
    return file->append(text);
  };
}

Result<LineSink> append_to(const std::string& path) {
  Result<std::shared_ptr<AppendFile>> file = open_lines(path);
  if (!file) return file.error();
  return lines_into(std::move(*file));
}

}  // namespace sluice
