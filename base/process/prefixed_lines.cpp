#include "base/process/prefixed_lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/files/write.hpp"

namespace sluice {
namespace {

constexpr std::size_t longest = 64 * 1024;  // a line is not waited for beyond this

}  // namespace

PrefixedLines::PrefixedLines(int from, int to, std::string prefix)
    : from_(from), to_(to), prefix_(std::move(prefix)) {
  fcntl(from_, F_SETFL, fcntl(from_, F_GETFL) | O_NONBLOCK);
}

PrefixedLines::PrefixedLines(PrefixedLines&& other) noexcept
    : from_(std::exchange(other.from_, -1)),
      to_(other.to_),
      prefix_(std::move(other.prefix_)),
      held_(std::move(other.held_)) {}

PrefixedLines::~PrefixedLines() {
  if (from_ >= 0) close(from_);
}

// False when there is no more, now or at all.
bool PrefixedLines::take() {
  std::array<char, 4096> buffer;
  const ssize_t got = read(from_, buffer.data(), buffer.size());
  if (got > 0) held_.append(buffer.data(), static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && errno == EINTR)) return true;
  if (got < 0 && errno == EAGAIN) return false;
  close(std::exchange(from_, -1));
  return false;
}

void PrefixedLines::pass_on() {
  if (!open()) return;
  take();
  write_lines(!open());
}

void PrefixedLines::drain() {
  while (open() && take()) write_lines(false);
  write_lines(true);
  if (open()) close(std::exchange(from_, -1));
}

void PrefixedLines::write_lines(bool all) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1)
    text += prefix_ + held_.substr(begin, end + 1 - begin);
  held_.erase(0, begin);
  if (!held_.empty() && (all || held_.size() > longest)) {
    text += prefix_ + held_ + "\n";
    held_.clear();
  }
  (void)write_all(to_, text);  // where nobody reads, nothing can be told
}

}  // namespace sluice
