#include "base/files/durable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/calls.hpp"
#include "base/files/regular.hpp"
#include "base/files/write.hpp"
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

// `fill` writes the content to a descriptor; false with errno if it cannot.
template <class Fill>
Status replace(const std::string& stage, const std::filesystem::path& path, const Fill& fill) {
  std::filesystem::path partial = path;
  partial += ".partial";
  const auto failed = [&](const std::string& what) -> Status {
    Error error{stage, path.string(), what + ": " + reason(),
                "check the folder's free space and permissions"};
    file_calls().unlink(partial.c_str());
    return error;
  };
  const OpenedFile opened = open_for_writing(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  OpenFile file(opened.fd);
  if (file.number() < 0)
    return Error{stage, path.string(),
                 "cannot create " + printable(partial.filename().string()) + ": " + opened.cause(),
                 "check that the folder exists and can be written to"};
  if (!fill(file.number())) return failed("cannot write");
  if (!sync_file(file.number())) return failed("cannot write to disk");
  if (!file.close()) return failed("cannot close");
  if (file_calls().rename(partial.c_str(), path.c_str()) != 0)
    return failed("cannot rename the finished file");
  if (!sync_folder_of(path)) return failed("cannot write the folder to disk");
  return Done{};
}

}  // namespace

Status replace_file(const std::string& stage, const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts) {
  return replace(stage, path, [&](int file) {
    return std::ranges::all_of(parts, [&](const auto& part) { return write_all(file, part) == part.size(); });
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
      const auto read = std::span(piece).first(static_cast<std::size_t>(count));
      if (write_all(file, read) < read.size()) return false;
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
  OpenFile file(file_calls().open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (file.number() < 0) return failed("cannot be opened: ");
  for (const auto& part : parts)
    if (write_all(file.number(), part) < part.size()) return failed("cannot write: ");
  if (!file.close()) return failed("cannot close: ");
  return Done{};
}

bool link_file(const std::filesystem::path& file, const std::filesystem::path& name) {
  std::filesystem::path partial = name;
  partial += ".partial";
  FileCalls& calls = file_calls();
  calls.unlink(partial.c_str());
  if (calls.link(file.c_str(), partial.c_str()) != 0) return false;
  const bool renamed = calls.rename(partial.c_str(), name.c_str()) == 0;
  calls.unlink(partial.c_str());  // two names of one file: rename leaves both
  return renamed && sync_folder_of(name);
}

bool move_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (file_calls().rename(from.c_str(), to.c_str()) != 0) return false;
  return sync_folder_of(to) && (from.parent_path() == to.parent_path() || sync_folder_of(from));
}

bool cut_file(const std::filesystem::path& path, std::uintmax_t bytes) {
  const OpenedFile opened = open_regular(path.c_str(), O_WRONLY);
  const OpenFile file(opened.fd);
  if (file.number() < 0) return errno = opened.error, false;
  return file_calls().ftruncate(file.number(), static_cast<off_t>(bytes)) == 0 && sync_file(file.number());
}

}  // namespace sluice
