#include "base/files/calls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace sluice {
namespace {

constinit FileCalls of_the_system;
constinit std::atomic<FileCalls*> current = &of_the_system;

}  // namespace

int FileCalls::open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t FileCalls::write(int file, const void* bytes, std::size_t size) { return ::write(file, bytes, size); }
int FileCalls::fsync(int file) { return ::fsync(file); }
int FileCalls::ftruncate(int file, off_t size) { return ::ftruncate(file, size); }
int FileCalls::rename(const char* from, const char* to) { return ::rename(from, to); }
int FileCalls::link(const char* file, const char* name) { return ::link(file, name); }
int FileCalls::unlink(const char* name) { return ::unlink(name); }

FileCalls& file_calls() { return *current.load(std::memory_order_acquire); }

ReplacedFileCalls::ReplacedFileCalls(FileCalls& by) : before_(current.exchange(&by)) {}
ReplacedFileCalls::~ReplacedFileCalls() { current = before_; }

}  // namespace sluice
