// The system calls that change files which must outlive a crash, as one object. Those of the system, unless a
// test puts others in their place: to see that data is synced before the rename that publishes it, and to
// find out what a crash between any two of them would leave.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace sluice {

// Each as in section 2 of the manual.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t write(int file, const void* bytes, std::size_t size);
  virtual int fsync(int file);  // a folder's too
  virtual int ftruncate(int file, off_t size);
  virtual int rename(const char* from, const char* to);
  virtual int link(const char* file, const char* name);
  virtual int unlink(const char* name);
};

[[nodiscard]] FileCalls& file_calls();

// For tests: all files of the process are written through `by` for as long as this lives.
class ReplacedFileCalls {
 public:
  explicit ReplacedFileCalls(FileCalls& by);
  ~ReplacedFileCalls();
  ReplacedFileCalls(const ReplacedFileCalls&) = delete;
  ReplacedFileCalls& operator=(const ReplacedFileCalls&) = delete;

 private:
  FileCalls* before_;
};

}  // namespace sluice
