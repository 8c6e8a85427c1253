#include "nodes/line_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

class LineFile {
 public:
  LineFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  ~LineFile() { ::close(descriptor_); }

  Status append(std::string_view line) {
    std::string text(line);
    text += '\n';
    std::size_t written = 0;
    while (written < text.size()) {
      const ssize_t count = ::write(descriptor_, text.data() + written, text.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const Error error = failure("cannot be written");
        if (written > 0) take_back(written);
        return error;
      }
      written += static_cast<std::size_t>(count);
    }
    return Done{};
  }

  // Only regular files can be cut; a pipe or a device has no past to mend.
  Status cut_torn_line() {
    struct stat about {};
    if (::fstat(descriptor_, &about) != 0) return failure("cannot be examined");
    if (!S_ISREG(about.st_mode)) return Done{};
    off_t end = about.st_size;
    std::array<char, 4096> block;
    while (end > 0) {
      const off_t start = end > static_cast<off_t>(block.size()) ? end - static_cast<off_t>(block.size()) : 0;
      const ssize_t count = ::pread(descriptor_, block.data(), static_cast<std::size_t>(end - start), start);
      if (count < 0 && errno == EINTR) continue;
      if (count != end - start) return failure("cannot be read");
      const auto newline = std::string_view(block.data(), static_cast<std::size_t>(count)).rfind('\n');
      if (newline != std::string_view::npos) {
        end = start + static_cast<off_t>(newline) + 1;
        break;
      }
      end = start;
    }
    if (end != about.st_size && ::ftruncate(descriptor_, end) != 0)
      return failure("cannot be cut to whole lines");
    return Done{};
  }

 private:
  [[nodiscard]] Error failure(const char* what) const {
    const int code = errno;
    return {"log", path_, std::string(what) + ": " + std::strerror(code),
            code == ENOSPC ? "free some space on that disk" : "check the folder and its permissions"};
  }

  void take_back(std::size_t bytes) const {
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, end - static_cast<off_t>(bytes));
  }

  std::string path_;
  int descriptor_;
};

}  // namespace

Result<LineSink> append_to(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return Error{"log", path, std::string("cannot be opened: ") + std::strerror(errno),
                 "check the folder and its permissions"};
  const auto file = std::make_shared<LineFile>(path, descriptor);
  if (Status cut = file->cut_torn_line(); !cut) return cut.error();
  return LineSink([file](std::string_view line) { return file->append(line); });
}

}  // namespace sluice
