#include "base/files/durable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/regular.hpp"
#include "base/printable.hpp"

namespace sluice {
namespace {

class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile() { (void)close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool close() {  // some file systems tell of a failed write only here
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

std::string reason() { return std::generic_category().message(errno); }

bool write_all(int file, std::span<const std::byte> bytes) {
  constexpr std::size_t most = 1 << 30;  // a single write() stops short of 2 GiB
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), most));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    if (written == 0) return errno = ENOSPC, false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool sync_folder(const std::filesystem::path& folder) {
  OpenFile opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems cannot sync a folder, and say so with EINVAL.
  return opened.number() >= 0 && (::fsync(opened.number()) == 0 || errno == EINVAL);
}

// `fill` writes the content to a descriptor; false with errno if it cannot.
template <class Fill>
Status replace(const std::string& stage, const std::filesystem::path& path, const Fill& fill) {
  std::filesystem::path partial = path;
  partial += ".partial";
  const auto failed = [&](const std::string& what) -> Status {
    Error error{stage, path.string(), what + ": " + reason(),
                "check the folder's free space and permissions"};
    ::unlink(partial.c_str());
    return error;
  };
  const OpenedFile opened = open_for_writing(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  OpenFile file(opened.fd);
  if (file.number() < 0)
    return Error{stage, path.string(),
                 "cannot create " + printable(partial.filename().string()) + ": " + opened.cause(),
                 "check that the folder exists and can be written to"};
  if (!fill(file.number())) return failed("cannot write");
  if (::fsync(file.number()) != 0) return failed("cannot write to disk");
  if (!file.close()) return failed("cannot close");
  if (::rename(partial.c_str(), path.c_str()) != 0) return failed("cannot rename the finished file");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!sync_folder(folder)) return failed("cannot write the folder to disk");
  return Done{};
}

}  // namespace

Status replace_file(const std::string& stage, const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts) {
  return replace(stage, path, [&](int file) {
    return std::ranges::all_of(parts, [&](const auto& part) { return write_all(file, part); });
  });
}

Status copy_file(const std::string& stage, const std::filesystem::path& from, const std::filesystem::path& to,
                 std::uintmax_t bytes) {
  const OpenedFile opened = open_regular(from.c_str());
  const OpenFile source(opened.fd);
  if (source.number() < 0) return Error{stage, from.string(), "cannot be opened: " + opened.cause(), ""};
  bool unread = false;
  const Status copied = replace(stage, to, [&](int file) {
    std::vector<std::byte> piece(1 << 20);
    while (bytes > 0) {
      const auto most = static_cast<std::size_t>(std::min<std::uintmax_t>(piece.size(), bytes));
      const ssize_t count = ::read(source.number(), piece.data(), most);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return !(unread = true);
      if (count == 0) break;
      if (!write_all(file, std::span(piece).first(static_cast<std::size_t>(count)))) return false;
      bytes -= static_cast<std::uintmax_t>(count);
    }
    return true;
  });
  if (!copied && unread) return Error{stage, from.string(), "cannot be read: " + reason(), ""};
  return copied;
}

Status write_output(const std::string& stage, const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::is_other(there) && !std::filesystem::is_symlink(there))
    return replace_file(stage, path, parts);
  const auto failed = [&](const char* what) {
    return Error{stage, path.string(), what + reason(), "choose a file that can be written"};
  };
  OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (file.number() < 0) return failed("cannot be opened: ");
  for (const auto& part : parts)
    if (!write_all(file.number(), part)) return failed("cannot write: ");
  if (!file.close()) return failed("cannot close: ");
  return Done{};
}

bool link_file(const std::filesystem::path& file, const std::filesystem::path& name) {
  std::filesystem::path partial = name;
  partial += ".partial";
  ::unlink(partial.c_str());
  if (::link(file.c_str(), partial.c_str()) != 0) return false;
  const bool renamed = ::rename(partial.c_str(), name.c_str()) == 0;
  ::unlink(partial.c_str());  // two names of one file: rename leaves both
  return renamed && sync_folder(name.has_parent_path() ? name.parent_path() : ".");
}

}  // namespace sluice
