#include "base/process/spawn.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace sluice {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// What happens to descriptors and folder in the child, before the program begins.
class Actions {
 public:
  explicit Actions(const SpawnOptions& o) {
    error_ = posix_spawn_file_actions_init(&actions_);
    if (!o.folder.empty()) keep(posix_spawn_file_actions_addchdir_np(&actions_, o.folder.c_str()));
    for (const SpawnOptions::Passed& passed : o.descriptors)
      keep(posix_spawn_file_actions_adddup2(&actions_, passed.here, passed.there));
  }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void keep(int error) {
    if (error_ == 0) error_ = error;
  }
  posix_spawn_file_actions_t actions_{};
  int error_ = 0;
};

class Attributes {
 public:
  explicit Attributes(const SpawnOptions& o) {
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int signal : o.default_signals) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const int flags = POSIX_SPAWN_SETSIGDEF | (o.own_group ? POSIX_SPAWN_SETPGROUP : 0);
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

Spawned spawn(const SpawnOptions& o) {
  const Actions actions(o);
  const Attributes attributes(o);
  Spawned spawned;
  spawned.error = actions.error();
  if (spawned.error == 0)
    spawned.error =
        posix_spawnp(&spawned.pid, o.program.c_str(), actions.get(), attributes.get(),
                     pointers(o.words).data(), o.environment ? pointers(*o.environment).data() : environ);
  return spawned;
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace sluice
