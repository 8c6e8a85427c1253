// A disk that can crash at any moment: files are written through it to a real folder, and afterwards it makes
// every folder that a crash could have left. What was not synced may be lost, whole or in part; names that
// were given since their folder was synced may be lost as well, the later ones first, as journals do.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/files/calls.hpp"
#include "tests/support/folder.hpp"

namespace sluice::test {

class CrashDisk : public FileCalls {
 public:
  // What is in `root` now is on the disk. From here on all files of the process are written through this one.
  explicit CrashDisk(std::filesystem::path root) : root_(std::move(root)), replaced_(*this) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      if (entry.is_regular_file()) {
        at_start_[name(entry.path())] = files_;
        before_.push_back(read_text(entry.path()));
        ++files_;
      }
    now_ = at_start_;
  }

  bool lies = false;         // says that files are synced, and does not
  bool folders_lie = false;  // likewise of folders
  bool no_links = false;     // as on file systems without hard links

  // The calls so far, by names below the root: "write a.partial", "sync a.partial", "rename a.partial a".
  [[nodiscard]] std::vector<std::string> calls() const {
    std::vector<std::string> all;
    for (const Call& call : calls_)
      if (all.empty() || all.back() != call.text) all.push_back(call.text);
    return all;
  }

  // Renames of files whose content was not on the disk yet, and names that were never brought there.
  [[nodiscard]] std::vector<std::string> unsafe() const {
    std::vector<std::string> found;
    State state = start();
    for (const Call& call : calls_) {
      if (call.kind == Kind::rename && state.names.contains(call.from) &&
          state.files[state.names.at(call.from)].now != state.files[state.names.at(call.from)].synced)
        found.push_back("not synced before: " + call.text);
      apply(state, call);
    }
    for (const Call& call : state.pending)
      if (call.kind != Kind::unlink) found.push_back("the folder is not synced after: " + call.text);
    return found;
  }

  // Makes each folder that a crash could leave, and shows it. `over`: the last call had returned.
  using Look = std::function<void(const std::filesystem::path& left, bool over, const std::string& when)>;
  void each_crash(const Look& look) const {
    State state = start();
    for (std::size_t done = 0; done <= calls_.size(); ++done) {
      const std::string when = done == 0 ? "before all" : "after " + calls_[done - 1].text;
      for (std::size_t names = 0; names <= state.pending.size(); ++names)
        for (const int kept : {0, 1, 2}) {  // of what was not synced: nothing, a half, all
          const TemporaryFolder left;
          make(left.path(), state, names, kept);
          look(left.path(), done == calls_.size(),
               when + ", " + std::to_string(names) + " names, " + std::to_string(kept) + "/2 of the data");
        }
      if (done < calls_.size()) apply(state, calls_[done]);
    }
  }

  int open(const char* path, int flags, mode_t mode) override {
    const int file = FileCalls::open(path, flags, mode);
    if (file < 0 || !below(path)) return forget(file);
    if (std::filesystem::is_directory(path)) return opened_[file] = {true, 0, name(path)}, file;
    if ((flags & O_ACCMODE) == O_RDONLY || !std::filesystem::is_regular_file(path)) return forget(file);
    const std::string own = name(path);
    if (!now_.contains(own)) {
      now_[own] = files_++;
      add({Kind::create, "create " + own, own, {}, now_[own], {}, 0});
    } else if (flags & O_TRUNC) {
      add({Kind::cut, "cut " + own, own, {}, now_[own], {}, 0});
    }
    opened_[file] = {false, now_[own], own};
    return file;
  }

  ssize_t write(int file, const void* bytes, std::size_t size) override {
    const ssize_t count = FileCalls::write(file, bytes, size);
    if (count > 0 && opened_.contains(file))
      add({Kind::write,
           "write " + opened_[file].name,
           {},
           {},
           opened_[file].file,
           std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(count)),
           0});
    return count;
  }

  int fsync(int file) override {
    const auto at = opened_.find(file);
    if (at == opened_.end()) return FileCalls::fsync(file);
    const bool folder = at->second.folder;
    if (!(folder ? folders_lie : lies))
      add({folder ? Kind::sync_folder : Kind::sync,
           "sync " + at->second.name,
           at->second.name,
           {},
           at->second.file,
           {},
           0});
    return 0;  // the test's own disk is not waited for
  }

  int ftruncate(int file, off_t size) override {
    const int failed = FileCalls::ftruncate(file, size);
    if (failed == 0 && opened_.contains(file))
      add({Kind::cut,
           "cut " + opened_[file].name,
           {},
           {},
           opened_[file].file,
           {},
           static_cast<std::size_t>(size)});
    return failed;
  }

  int rename(const char* from, const char* to) override {
    const int failed = FileCalls::rename(from, to);
    if (failed == 0) add_name({Kind::rename, "rename " + name(from) + " " + name(to), name(from), name(to)});
    return failed;
  }

  int link(const char* file, const char* to) override {
    if (no_links) return errno = EPERM, -1;
    const int failed = FileCalls::link(file, to);
    if (failed == 0) add_name({Kind::link, "link " + name(file) + " " + name(to), name(file), name(to)});
    return failed;
  }

  int unlink(const char* path) override {
    const int failed = FileCalls::unlink(path);
    if (failed == 0) add_name({Kind::unlink, "unlink " + name(path), name(path), {}});
    return failed;
  }

 private:
  enum class Kind { create, write, cut, sync, rename, link, unlink, sync_folder };
  struct Call {
    Kind kind;
    std::string text, from = {}, to = {};
    std::size_t file = 0;
    std::string bytes = {};
    std::size_t size = 0;
  };
  using Names = std::map<std::string, std::size_t>;  // to the number of a file
  struct Content {
    std::string now, synced;
  };
  struct State {
    std::vector<Content> files;
    Names names, on_disk;
    std::vector<Call> pending;  // changes of names that are not on the disk
  };
  struct Opened {
    bool folder = false;
    std::size_t file = 0;
    std::string name;
  };

  [[nodiscard]] bool below(const std::filesystem::path& path) const { return !name(path).starts_with(".."); }
  [[nodiscard]] std::string name(const std::filesystem::path& path) const {
    return std::filesystem::absolute(path).lexically_normal().lexically_relative(root_).string();
  }
  int forget(int file) {
    opened_.erase(file);
    return file;
  }
  void add(Call call) { calls_.push_back(std::move(call)); }
  void add_name(Call call) {
    rename_in(now_, call);
    add(std::move(call));
  }

  static std::string folder_of(const std::string& name) {
    const std::string parent = std::filesystem::path(name).parent_path().string();
    return parent.empty() ? "." : parent;
  }

  // Of a folder, all that is in it moves.
  static void rename_in(Names& names, const Call& call) {
    if (call.kind == Kind::create) names[call.from] = call.file;
    if (call.kind == Kind::link && names.contains(call.from)) names[call.to] = names.at(call.from);
    if (call.kind == Kind::unlink) names.erase(call.from);
    if (call.kind != Kind::rename) return;
    // Two names of one file: rename does nothing.
    if (names.contains(call.from) && names.contains(call.to) && names[call.from] == names[call.to]) return;
    Names moved;
    for (const auto& [name, file] : names)
      if (name == call.from)
        moved[call.to] = file;
      else if (name.starts_with(call.from + "/"))
        moved[call.to + name.substr(call.from.size())] = file;
      else
        moved.try_emplace(name, file);
    names = std::move(moved);
  }

  [[nodiscard]] State start() const {
    State state;
    for (const std::string& content : before_) state.files.push_back({content, content});
    state.files.resize(files_);
    state.names = state.on_disk = at_start_;
    return state;
  }

  static void apply(State& state, const Call& call) {
    Content& content = state.files[call.file];
    switch (call.kind) {
      case Kind::write:
        content.now += call.bytes;
        return;  // all here only ever append
      case Kind::cut:
        content.now.resize(call.size);
        return;
      case Kind::sync:
        content.synced = content.now;
        return;
      case Kind::sync_folder: {
        std::vector<Call> left;
        for (Call& change : state.pending)
          if (folder_of(change.to.empty() ? change.from : change.to) == call.from)
            rename_in(state.on_disk, change);
          else
            left.push_back(std::move(change));
        state.pending = std::move(left);
        return;
      }
      default:
        rename_in(state.names, call);
        state.pending.push_back(call);
    }
  }

  void make(const std::filesystem::path& left, State state, std::size_t names, int kept) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      if (entry.is_directory()) std::filesystem::create_directories(left / name(entry.path()));
    for (std::size_t i = 0; i < names; ++i) rename_in(state.on_disk, state.pending[i]);
    for (const auto& [name, file] : state.on_disk) {
      const auto& [now, synced] = state.files[file];
      std::string content = kept == 0 ? synced : now;
      if (kept == 1 && now.size() > synced.size()) content.resize((now.size() + synced.size()) / 2);
      write_file(left / name, content);
    }
  }

  const std::filesystem::path root_;
  std::size_t files_ = 0;
  std::vector<std::string> before_;
  Names at_start_, now_;
  std::map<int, Opened> opened_;
  std::vector<Call> calls_;
  ReplacedFileCalls replaced_;  // last: it uses all of the above
};

}  // namespace sluice::test
