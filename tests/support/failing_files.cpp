// Loaded before a program (LD_PRELOAD): one of its files or folders fails as on a broken disk or a dead
// mount, which permissions cannot show to root. SLUICE_FAIL_PATH is the end of its path, SLUICE_FAIL_CALL
// what fails ("open", "list", "read"), SLUICE_FAIL_ERRNO how. With "hang" it is never opened, but the call
// never comes back either; other files of its kind are opened once it hangs, and a process that then runs its
// exit handlers says so. With "setenv" nothing fails: each change of the environment is told, with the number
// of threads that there are.
// With it, the names below would stand for those that end in 64.
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool fails(const char* call, std::string_view path) {
  const char *end = std::getenv("SLUICE_FAIL_PATH"), *which = std::getenv("SLUICE_FAIL_CALL");
  if (!end || !which || std::string_view(which) != call || !path.ends_with(end)) return false;
  errno = std::atoi(std::getenv("SLUICE_FAIL_ERRNO"));
  return true;
}

bool fails(const char* call, int fd) {
  if (!std::getenv("SLUICE_FAIL_PATH")) return false;
  const int before = errno;
  char path[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  errno = before;
  return size > 0 && fails(call, std::string_view(path, static_cast<std::size_t>(size)));
}

std::atomic<bool> hangs{false};

void hang_or_wait(std::string_view path) {
  const char *end = std::getenv("SLUICE_FAIL_PATH"), *which = std::getenv("SLUICE_FAIL_CALL");
  if (!end || !which || std::string_view(which) != "hang") return;
  const std::string_view fails(end);
  if (path.ends_with(fails)) hangs = true;
  while (path.ends_with(fails) || (!hangs && path.ends_with(fails.substr(fails.rfind('.'))))) usleep(1000);
}

__attribute__((destructor)) void at_exit() {
  constexpr std::string_view told = "exit handlers run, and a read hangs\n";
  if (hangs) (void)!write(2, told.data(), told.size());
}

}  // namespace

extern "C" {

int openat(int folder, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  static const auto go_on = real<int(int, const char*, int, ...)>("openat");
  hang_or_wait(path);
  return fails("open", path) ? -1 : go_on(folder, path, flags, mode);
}

int setenv(const char* name, const char* value, int overwrite) {
  static const auto go_on = real<int(const char*, const char*, int)>("setenv");
  const char* const which = std::getenv("SLUICE_FAIL_CALL");
  if (which && std::string_view(which) == "setenv") {
    int threads = 0;
    if (DIR* const tasks = opendir("/proc/self/task")) {
      while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
      closedir(tasks);
    }
    std::fprintf(stderr, "setenv %s with %d threads\n", name, threads);
  }
  return go_on(name, value, overwrite);
}

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  static const auto go_on = real<FILE*(const char*, const char*)>("fopen64");
  return fails("open", path) ? nullptr : go_on(path, mode);
}

DIR* opendir(const char* path) {
  static const auto go_on = real<DIR*(const char*)>("opendir");
  return fails("open", path) ? nullptr : go_on(path);
}

dirent* readdir(DIR* folder) {
  static const auto go_on = real<dirent*(DIR*)>("readdir");
  return fails("list", dirfd(folder)) ? nullptr : go_on(folder);
}

dirent64* readdir64(DIR* folder) {
  static const auto go_on = real<dirent64*(DIR*)>("readdir64");
  return fails("list", dirfd(folder)) ? nullptr : go_on(folder);
}

ssize_t read(int fd, void* to, size_t bytes) {
  static const auto go_on = real<ssize_t(int, void*, size_t)>("read");
  return fails("read", fd) ? -1 : go_on(fd, to, bytes);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  static const auto go_on = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return fails("read", fd) ? -1 : go_on(fd, to, bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  static const auto go_on = real<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return fails("read", fd) ? -1 : go_on(fd, to, bytes, at);
}
}
