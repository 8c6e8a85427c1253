#include "run/session/ending.hpp"

#include <utility>

namespace sluice {

Ending Ending::refused(Error why) {
  Ending ending;
  ending.kind = Kind::refused;
  ending.failure = std::move(why);
  return ending;
}

void Ending::fail(const Error& error) {
  if (failure) return;
  kind = Kind::failed;
  failure = error;
}

void Ending::stopped_by(int by) {
  if (failure) return;
  kind = Kind::stopped;
  signal = by;
}

int Ending::code() const {
  switch (kind) {
    case Kind::finished:
    case Kind::enough:
      return exit_done;
    case Kind::stopped:
      return 128 + signal;
    case Kind::failed:
      return exit_failed;
    case Kind::refused:
      break;
  }
  return exit_usage;
}

}  // namespace sluice
