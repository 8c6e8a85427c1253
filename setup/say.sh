# Messages of the set-up. All go to stderr: stdout belongs to the program's results.
# shellcheck shell=bash
say() { printf 'sluice: %s\n' "$*" >&2; }

# fail CODE MESSAGE...
fail() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# Waits for the lock on an open file descriptor: lock FD WHAT
lock() {
  flock -n "$1" && return
  say "waiting for another $2 to finish"
  flock "$1"
}
