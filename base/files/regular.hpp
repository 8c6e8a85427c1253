// Files opened by a name that others may have filled. Only a regular file is taken: a FIFO that nobody writes
// to, a socket or a device would hold the caller up for ever. Opening itself never waits either.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <istream>
#include <streambuf>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice {

struct OpenedFile {
  int fd = -1;                 // the caller's to close; below 0 where there is none
  int error = 0;               // why, by the system's number
  const char* kind = nullptr;  // what it is instead of a regular file: "a FIFO"; null where `error` tells all
  struct stat facts {};

  // Why there is none: "No such file or directory", "is a FIFO, not a file".
  [[nodiscard]] std::string cause() const;
};

[[nodiscard]] OpenedFile open_regular(const char* path, int flags = O_RDONLY);
// A character device, such as /dev/null, may be written to as well.
[[nodiscard]] OpenedFile open_for_writing(const char* path, int flags);
// A pipe or a character device may be read as well, for as long as somebody writes to it.
[[nodiscard]] OpenedFile open_stream(const char* path);

// Reads a regular file as a stream. Storage that fails ends it as the end of the file does; read_error()
// tells the two apart.
class InputFile : public std::istream {
 public:
  explicit InputFile(const std::string& path);
  [[nodiscard]] bool missing() const { return opened_.error == ENOENT; }
  [[nodiscard]] bool opened() const { return opened_.fd >= 0; }
  [[nodiscard]] std::string cause() const { return opened_.cause(); }  // why it is not opened
  [[nodiscard]] int read_error() const { return buffer_.error(); }     // a number of the system; 0: none

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(int fd) : file_(fd) {}
    [[nodiscard]] int error() const { return error_; }

   private:
    int_type underflow() override;
    Descriptor file_;
    int error_ = 0;
    std::vector<char> bytes_ = std::vector<char>(64 << 10);
  };

  OpenedFile opened_;
  Buffer buffer_;
};

}  // namespace sluice
