#include "nodes/read.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files/regular.hpp"
#include "base/text.hpp"
#include "graph/figures/nodes.hpp"

namespace sluice {
namespace {

// Fills all of `where` from the start of the file; 0 or an error number. A file that has become shorter is
// ESTALE.
int read_all(int fd, std::vector<iovec>& where) {
  off_t at = 0;
  for (std::size_t first = 0; first < where.size();) {
    const int count = static_cast<int>(std::min<std::size_t>(where.size() - first, 512));
    ssize_t got = preadv(fd, &where[first], count, at);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (got == 0) return ESTALE;
    at += got;
    while (first < where.size() && static_cast<std::size_t>(got) >= where[first].iov_len)
      got -= static_cast<ssize_t>(where[first++].iov_len);
    if (got > 0) {
      where[first].iov_base = static_cast<char*>(where[first].iov_base) + got;
      where[first].iov_len -= static_cast<std::size_t>(got);
    }
  }
  return 0;
}

}  // namespace

bool may_pass(int error) {
  switch (error) {
    case EIO:
    case EAGAIN:
    case EINTR:
    case ESTALE:
    case ETIMEDOUT:
    case EBUSY:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ECONNRESET:
    case ENOTCONN:
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return true;
    default:
      return false;
  }
}

int with_retries(const ReadOptions& options, const Stop& stop, FunctionRef<int()> attempt) {
  std::chrono::milliseconds pause = options.first_pause;
  for (int left = options.tries;; pause *= 2) {
    const int error = attempt();
    if (error == 0 || !may_pass(error) || --left <= 0 || !stop.pause(pause)) return error;
  }
}

Outcome read_file(const std::string& path, const ReadOptions& options, MakeRoom make_room, const Stop& stop) {
  thread_local std::vector<iovec> where, copy;
  Outcome outcome;
  std::size_t placed = 0;  // memory is taken once, at the size that was seen first
  const int error = with_retries(options, stop, [&] {
    outcome = {};
    const OpenedFile opened = open_regular(path.c_str());
    const Descriptor file(opened.fd);
    if (opened.kind && opened.error != EISDIR) {  // a folder of images in its place is worth a stop
      outcome =
          Outcome::bad({name_of(NodeId::read), path, opened.cause(), "remove it or list it in data.exclude"});
      return 0;
    }
    if (opened.error != 0) return opened.error;
    const auto bytes = static_cast<std::size_t>(opened.facts.st_size);
    if (placed > 0 && bytes != placed) return ESTALE;
    if (bytes == 0) {
      outcome =
          Outcome::bad({name_of(NodeId::read), path, "empty file", "remove it or list it in data.exclude"});
    } else if (bytes > options.max_file) {
      outcome = Outcome::bad(
          {name_of(NodeId::read), path,
           readable_bytes(bytes) + ", more than data.max_file (" + readable_bytes(options.max_file) + ")",
           "raise data.max_file or list it in data.exclude"});
    } else if (placed == 0) {
      where.clear();
      if (!make_room(bytes, where))
        outcome = Outcome::big();
      else
        placed = bytes;
    }
    if (placed == 0) return 0;
    copy = where;
    return read_all(file.get(), copy);
  });
  if (error == 0) return outcome;
  const bool tried = may_pass(error);
  return Outcome::fatal(
      {name_of(NodeId::read), path,
       std::strerror(error) +
           std::string(tried ? " (after " + std::to_string(options.tries) + " tries)" : ""),
       tried ? "check the mount or the disk, then go on with --resume auto"
             : "the file was there when the run began; put it back or list it in data.exclude"});
}

}  // namespace sluice
