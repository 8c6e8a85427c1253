#include "base/files/append.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/files/calls.hpp"
#include "base/files/regular.hpp"
#include "base/files/write.hpp"

namespace sluice {

Result<std::shared_ptr<AppendFile>> AppendFile::open(const std::string& path) {
  const OpenedFile opened = open_for_writing(path.c_str(), O_RDWR | O_CREAT | O_APPEND);
  if (opened.fd < 0)
    return Error{
        "log", path, "cannot be opened: " + opened.cause(),
        opened.kind ? "remove it, or name another run folder" : "check the folder and its permissions"};
  const bool regular = S_ISREG(opened.facts.st_mode);
  auto file = std::make_shared<AppendFile>(path, opened.fd, regular);
  if (regular) file->least_ = opened.facts.st_size;
  return file;
}

AppendFile::~AppendFile() { ::close(descriptor_); }

Status AppendFile::append(std::string_view piece) {
  if (const std::size_t written = write_all(descriptor_, piece); written < piece.size()) {
    const Error error = failure("cannot be written");
    if (written > 0) take_back(written);
    return error;
  }
  least_ += static_cast<std::int64_t>(piece.size());
  return Done{};
}

Status AppendFile::sync() {
  if (!regular_) return Done{};  // a device has no disk behind it
  if (!sync_file(descriptor_)) return failure("cannot be brought to the disk");
  if (!name_synced_ && !sync_folder_of(path_)) return failure("its folder cannot be brought to the disk");
  name_synced_ = true;
  return Done{};
}

Status AppendFile::still_there() const {
  const auto lost = [this](const char* cause) {
    return Error{"log", path_, cause, "look who has changed the run's folder"};
  };
  struct stat open {
  }, named{};
  if (::fstat(descriptor_, &open) != 0) return failure("cannot be examined");
  if (!S_ISREG(open.st_mode)) return Done{};
  const bool is_named = ::stat(path_.c_str(), &named) == 0;
  if (!is_named && errno != ENOENT && errno != ENOTDIR) return failure("cannot be examined");
  if (!is_named) return lost("was removed or renamed during the run");
  if (open.st_dev != named.st_dev || open.st_ino != named.st_ino)
    return lost("was replaced by another file during the run");
  if (open.st_size < least_) return lost("was cut during the run");
  return Done{};
}

// Only regular files can be cut; a device has no past to mend.
Status AppendFile::cut_torn_line() {
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
  if (end != about.st_size && file_calls().ftruncate(descriptor_, end) != 0)
    return failure("cannot be cut to whole lines");
  least_ = end;
  return Done{};
}

Error AppendFile::failure(const char* what) const {
  const int code = errno;
  return {"log", path_, std::string(what) + ": " + std::strerror(code),
          code == ENOSPC ? "free some space on that disk" : "check the folder and its permissions"};
}

void AppendFile::take_back(std::size_t bytes) const {
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  [[maybe_unused]] const int cut = file_calls().ftruncate(descriptor_, end - static_cast<off_t>(bytes));
}

}  // namespace sluice
