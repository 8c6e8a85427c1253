#include "base/files/regular.hpp"

#include <unistd.h>

#include <cstring>

#include "base/files/calls.hpp"

namespace sluice {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISREG(mode)) return nullptr;
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

enum class Also { nothing, devices, devices_and_pipes };

bool taken(mode_t mode, Also also) {
  return S_ISREG(mode) || (also != Also::nothing && S_ISCHR(mode)) ||
         (also == Also::devices_and_pipes && S_ISFIFO(mode));
}

OpenedFile open_file(const char* path, int flags, Also also) {
  OpenedFile file;
  const int fd = file_calls().open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) {
    file.error = errno;
    // A socket cannot be opened, a FIFO without a reader not for writing: the number tells of a device.
    if (file.error == ENXIO && stat(path, &file.facts) == 0) file.kind = kind_of(file.facts.st_mode);
    return file;
  }
  if (fstat(fd, &file.facts) != 0) {
    file.error = errno;
  } else {
    if (!taken(file.facts.st_mode, also)) file.kind = kind_of(file.facts.st_mode);
    if (file.kind) file.error = S_ISDIR(file.facts.st_mode) ? EISDIR : ENXIO;
  }
  // Only opening must not wait: storage that is slow to read from is waited for.
  if (file.error == 0 && fcntl(fd, F_SETFL, flags & O_APPEND) != 0) file.error = errno;
  if (file.error != 0) {
    close(fd);
    return file;
  }
  file.fd = fd;
  return file;
}

}  // namespace

std::string OpenedFile::cause() const {
  return kind ? std::string("is ") + kind + ", not a file" : std::strerror(error);
}

OpenedFile open_regular(const char* path, int flags) { return open_file(path, flags, Also::nothing); }
OpenedFile open_for_writing(const char* path, int flags) { return open_file(path, flags, Also::devices); }
OpenedFile open_stream(const char* path) { return open_file(path, O_RDONLY, Also::devices_and_pipes); }

InputFile::InputFile(const std::string& path)
    : std::istream(nullptr), opened_(open_regular(path.c_str())), buffer_(opened_.fd) {
  rdbuf(&buffer_);
  if (!opened()) setstate(std::ios::failbit);
}

InputFile::Buffer::int_type InputFile::Buffer::underflow() {
  if (file_.get() < 0) return traits_type::eof();
  ssize_t got = 0;
  do got = ::read(file_.get(), bytes_.data(), bytes_.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) error_ = errno;
  if (got <= 0) return traits_type::eof();
  setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
  return traits_type::to_int_type(bytes_[0]);
}

}  // namespace sluice
