#include "run/data/storage_probe.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/files/regular.hpp"
#include "base/guarded.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

enum class Found { on_storage, in_memory, not_told };

// Asks for the first byte without waiting for storage.
Found where_is(int fd) {
  char byte;
  iovec one{&byte, 1};
  const ssize_t got = preadv2(fd, &one, 1, 0, RWF_NOWAIT);
  if (got >= 0) return Found::in_memory;
  return errno == EAGAIN ? Found::on_storage : Found::not_told;
}

struct OneFile {
  std::size_t bytes = 0;
  Found found = Found::not_told;
  double ms = 0;
  int error = 0;
};

OneFile read_one(const std::string& path, std::vector<char>& buffer) {
  OneFile one;
  const auto begin = Clock::now();
  const OpenedFile file = open_regular(path.c_str());
  const int fd = file.fd;
  if (fd < 0) return one.error = file.error, one;
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  one.found = where_is(fd);
  for (;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(one.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) one.error = errno;
    if (got <= 0) break;
    one.bytes += static_cast<std::size_t>(got);
  }
  close(fd);
  one.ms = ms_since(begin);
  return one;
}

}  // namespace

ReadFigures read_files(std::span<const std::string> files, unsigned in_flight,
                       std::chrono::milliseconds limit) {
  struct {
    Mutex mutex;
    ReadFigures figures GUARDED_BY(mutex);
    std::vector<double> times GUARDED_BY(mutex);
  } all;
  in_flight = std::max(in_flight, 1u);
  std::atomic<std::size_t> next{0};
  const auto begin = Clock::now();
  const auto body = [&] {
    std::vector<char> buffer(1 << 20);
    for (std::size_t i; Clock::now() - begin < limit && (i = next++) < files.size();) {
      const OneFile one = read_one(files[i], buffer);
      const Lock lock(all.mutex);
      ReadFigures& figures = all.figures;
      if (one.error != 0) {
        ++figures.failed;
        if (!figures.failure)
          figures.failure = Error{"storage", files[i], std::strerror(one.error),
                                  "a run ends at such a file: mend it, or list it in data.exclude"};
        continue;
      }
      ++figures.files;
      figures.bytes += one.bytes;
      figures.cached += one.found == Found::in_memory && one.bytes > 0;
      figures.unknown += one.found == Found::not_told;
      all.times.push_back(one.ms);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < in_flight; ++i) threads.emplace_back(body);
  }
  const Lock lock(all.mutex);
  ReadFigures figures = std::move(all.figures);
  figures.in_flight = in_flight;
  figures.seconds = ms_since(begin) / 1e3;
  if (!all.times.empty()) {
    std::ranges::sort(all.times);
    figures.median_ms = all.times[all.times.size() / 2];
    figures.slowest_ms = all.times.back();
  }
  return figures;
}

std::vector<std::size_t> spread(std::size_t size, std::size_t count, double offset) {
  std::vector<std::size_t> all;
  const std::size_t n = std::min(size, count);
  const double step = n > 0 ? static_cast<double>(size) / static_cast<double>(n) : 0;
  for (std::size_t i = 0; i < n; ++i)
    all.push_back(std::min(static_cast<std::size_t>((static_cast<double>(i) + offset) * step), size - 1));
  return all;
}

}  // namespace sluice
