#include "run/data/synth.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/files/regular.hpp"
#include "base/files/write.hpp"
#include "base/guarded.hpp"
#include "run/data/synth_image.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

Error failed(const fs::path& subject, std::string cause,
             std::string hint = "check the folder, its permissions and the disk") {
  return {"synth", subject.string(), std::move(cause), std::move(hint)};
}

// Also the mark of a complete tree. The threads are left out: they do not change it.
std::string manifest(const SynthOptions& o) {
  std::ostringstream out;
  out << "{\"classes\":" << o.classes << ",\"train_per_class\":" << o.train_per_class
      << ",\"val_per_class\":" << o.val_per_class << ",\"seed\":" << o.seed << ",\"size\":" << o.size
      << "}\n";
  return out.str();
}

std::string content(const fs::path& file) {
  InputFile in(file.string());
  std::ostringstream out;
  if (in.opened()) out << in.rdbuf();
  return out.str();
}

bool write_and_close(int file, const char* bytes, std::size_t size) {
  const bool written = write_all(file, std::string_view(bytes, size)) == size;
  const int error = errno;
  const bool closed = ::close(file) == 0;  // some file systems tell of a failed write only here
  if (!written) errno = error;
  return written && closed;
}

// Under another name first, so that a file that is there is whole. What has that name is taken away and not
// written to: it may be a FIFO, or a link to somebody's file.
Status write_file(const fs::path& file, const char* bytes, std::size_t size) {
  const fs::path draft = file.string() + ".tmp";
  std::error_code error;
  fs::remove(draft, error);
  const OpenedFile opened = open_regular(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL);
  if (opened.fd < 0) return failed(draft, "cannot be made: " + opened.cause());
  if (!write_and_close(opened.fd, bytes, size))
    return failed(draft, std::string("cannot be written: ") + std::strerror(errno));
  fs::rename(draft, file, error);
  if (error) return failed(file, "cannot be named so: " + error.message());
  return Done{};
}

struct Job {
  int split = 0, label = 0, number = 0;  // split: 0 = train, 1 = val

  [[nodiscard]] fs::path folder() const {
    return fs::path(split == 0 ? "train" : "val") / fmt::format("n{:08}", label);
  }
  [[nodiscard]] fs::path file() const { return folder() / fmt::format("n{:08}_{}.JPEG", label, number); }
};

Job job_at(const SynthOptions& o, std::int64_t index) {
  const std::int64_t train = std::int64_t{o.classes} * o.train_per_class;
  const int split = index < train ? 0 : 1;
  const std::int64_t rest = split == 0 ? index : index - train;
  const int per_class = split == 0 ? o.train_per_class : o.val_per_class;
  return {split, static_cast<int>(rest / per_class), static_cast<int>(rest % per_class)};
}

Status make_image(const SynthOptions& o, const Job& job, const fs::path& root) {
  const fs::path file = root / job.file();
  std::error_code ignored;
  if (fs::is_regular_file(fs::symlink_status(file, ignored))) return Done{};
  const std::uint64_t index =
      static_cast<std::uint64_t>(job.label) << 32 | static_cast<std::uint32_t>(job.number);
  Random random(o.seed, static_cast<std::uint64_t>(job.split), index, Purpose::synth);
  const Storage storage = choose_storage(random);
  const auto bytes = encode_jpeg(paint({job.label, o.classes, o.size}, random), storage);
  if (bytes.empty()) return failed(file, "cannot be encoded", "choose a smaller size");
  return write_file(file, reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status make_images(const SynthOptions& o, const fs::path& root, const SynthProgress& progress) {
  const std::int64_t total = std::int64_t{o.classes} * (o.train_per_class + o.val_per_class);
  std::error_code error;
  for (int split = 0; split < 2; ++split)
    for (int label = 0; label < o.classes; ++label)
      if (fs::create_directories(root / Job{split, label, 0}.folder(), error); error)
        return failed(root, "cannot make its folders: " + error.message());

  std::atomic<std::int64_t> next{0};
  struct {
    Mutex mutex;
    std::int64_t done GUARDED_BY(mutex) = 0;
    std::optional<Error> first GUARDED_BY(mutex);
  } so_far;
  const auto work = [&] {
    for (std::int64_t i = next++; i < total; i = next++) {
      Status made = make_image(o, job_at(o, i), root);
      const Lock lock(so_far.mutex);
      if (!made && !so_far.first) so_far.first = made.error();
      if (so_far.first) return;
      ++so_far.done;
      if (progress) progress(so_far.done, total);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < o.threads; ++i) helpers.emplace_back(work);
    work();
  }
  const Lock lock(so_far.mutex);
  if (so_far.first) return *so_far.first;
  return Done{};
}

// An open folder with an exclusive lock, which ends with the object (or the process).
class FolderLock {
 public:
  static Result<FolderLock> take(const fs::path& folder) {
    for (;;) {
      std::error_code error;
      if (fs::create_directories(folder, error); error)
        return failed(folder, "cannot be made: " + error.message());
      FolderLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (lock.descriptor_ < 0 && errno == ENOENT) continue;
      if (lock.descriptor_ < 0 || ::flock(lock.descriptor_, LOCK_EX) != 0)
        return failed(folder, std::string("cannot be locked: ") + std::strerror(errno));
      // While we waited, the other call may have moved this folder to its final name.
      struct stat held {
      }, there{};
      if (::fstat(lock.descriptor_, &held) == 0 && ::stat(folder.c_str(), &there) == 0 &&
          held.st_ino == there.st_ino)
        return lock;
    }
  }

  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] bool flush() const { return ::syncfs(descriptor_) == 0; }

 private:
  int descriptor_;
};

Status check(const SynthOptions& o) {
  const auto refuse = [](const char* what, const std::string& range) {
    return Error{"synth", what, "must be " + range, ""};
  };
  if (o.dir.empty()) return refuse("dir", "given");
  if (o.classes < 2 || o.classes > synth_classes_limit)
    return refuse("classes", "from 2 to " + std::to_string(synth_classes_limit));
  if (o.train_per_class < 1 || o.val_per_class < 1) return refuse("images per class", "1 or more");
  if (o.size < 16 || o.size > 8192) return refuse("size", "from 16 to 8192 pixels");
  if (o.threads < 1 || o.threads > 256) return refuse("threads", "from 1 to 256");
  return Done{};
}

enum class FoundTree { nothing, same, other };

FoundTree look(const fs::path& dir, const std::string& wanted) {
  std::error_code ignored;
  if (!fs::exists(dir, ignored) || fs::is_empty(dir, ignored)) return FoundTree::nothing;
  return content(dir / "synth.json") == wanted ? FoundTree::same : FoundTree::other;
}

Error occupied(const fs::path& dir) {
  return failed(dir, "holds something else, or a tree made with other options",
                "remove it or choose another folder");
}

}  // namespace

Status synth(const SynthOptions& options, const SynthProgress& progress) {
  if (Status fine = check(options); !fine) return fine;
  const fs::path dir = (fs::path(options.dir) / "").parent_path();  // without a slash at the end
  const fs::path partial = dir.string() + ".partial";
  const std::string wanted = manifest(options);
  if (const FoundTree found = look(dir, wanted); found != FoundTree::nothing) {
    if (found == FoundTree::other) return occupied(dir);
    return Done{};
  }
  auto lock = FolderLock::take(partial);
  if (!lock) return lock.error();
  std::error_code error;
  if (const FoundTree found = look(dir, wanted); found != FoundTree::nothing) {
    fs::remove(partial, error);  // made a moment ago by us, and empty
    if (found == FoundTree::other) return occupied(dir);
    return Done{};
  }
  if (content(partial / "synth.json") != wanted) {
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(partial, error)) old.push_back(entry.path());
    for (const fs::path& path : old) fs::remove_all(path, error);
    if (Status noted = write_file(partial / "synth.json", wanted.data(), wanted.size()); !noted) return noted;
  }
  if (Status made = make_images(options, partial, progress); !made) return made;
  if (!lock->flush()) return failed(partial, std::string("cannot be made durable: ") + std::strerror(errno));
  fs::rename(partial, dir, error);
  if (error) return failed(dir, "cannot be put in place: " + error.message());
  return Done{};
}

}  // namespace sluice
