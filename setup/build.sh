# Configuring and compiling build folders.
# shellcheck shell=bash disable=SC2154

# A file that includes libtorch takes 1.5 GB to compile, so memory may allow fewer jobs than there are cores.
job_count() {
  local cores fit
  cores=$(nproc)
  fit=$(awk '/^MemAvailable:/ { print int($2 / 1536 / 1024) }' /proc/meminfo)
  ((fit >= 1)) || fit=1
  echo $((cores < fit ? cores : fit))
}

# Sets up a build folder unless it is there with these options (and `nvcc`): configure FOLDER OPTION...
# The wish is written down before meson starts and meson writes build.ninja last, so an interrupted set-up shows.
# A folder without our note was set up by hand and is left as it is.
configure() {
  local folder=$root/$1 name=$1 note wish log
  shift
  note=$folder/.wish
  wish=$(printf '%s\n' "$@" "nvcc=${nvcc:-} CXX=${CXX:-} CXXFLAGS=${CXXFLAGS:-} LDFLAGS=${LDFLAGS:-}")
  if [[ -e $folder/build.ninja ]]; then
    [[ -e $note ]] || return 0
    [[ $(<"$note") == "$wish" ]] && return 0
  fi
  say "configuring $name/"
  rm -rf "$folder"
  mkdir -p "$folder"
  printf '%s\n' "$wish" >"$note"
  if [[ -n ${nvcc:-} ]]; then
    # The only way to tell meson about a compiler for CUDA that is not on the PATH.
    printf "[binaries]\ncuda = '%s'\n" "$nvcc" >"$folder/nvcc.ini"
    set -- "$@" --native-file "$folder/nvcc.ini"
  fi
  if ! log=$("$meson" setup "$folder" "$root" "$@" 2>&1 </dev/null); then
    printf '%s\n' "$log" >&2
    fail 1 "meson could not configure $name/; see above"
  fi
}

# Compiles targets (all without any); silent when there is nothing to do: compile FOLDER TARGET...
compile() {
  local folder=$root/$1 name=$1
  shift
  [[ $(ninja -C "$folder" -n "$@" 2>&1) == *"no work to do"* ]] && return
  say "compiling $name/"
  ninja -C "$folder" -j "$(job_count)" "$@" >&2 </dev/null || fail 1 "$name/ does not compile; see above"
}

# What every build needs first; sets `meson` and `libtorch`.
ensure_tools() {
  ensure_packages
  if [[ -n ${LIBTORCH:-} ]]; then
    ensure_environment tools
    libtorch=$LIBTORCH
  else
    ensure_environment cpu
    libtorch=$(torch_in "$environment")
  fi
  meson=$environment/bin/meson
}

torch_in() {
  local found=("$1"/lib/python3*/site-packages/torch)
  printf '%s\n' "${found[0]}"
}

# Two builds of one checkout would disturb each other. The lock is on the source folder itself: no file is left behind.
with_build_lock() {
  local build_fd
  exec {build_fd}<"$root"
  lock "$build_fd" "build of $root"
  "$@"
  exec {build_fd}<&-
}

build_cpu() {  # build_cpu TARGET...
  configure build "-Dlibtorch=$libtorch" -Dcuda=disabled
  compile build "$@"
}

# The nvcc of the environment comes first: it is the release that libtorch was built with.
build_cuda() {
  local nvcc folder=${libtorch_cuda%/torch}
  for nvcc in "${NVCC:-}" "$folder/nvidia/cu13/bin/nvcc" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
    [[ -x $nvcc ]] && break
  done
  [[ -x $nvcc ]] ||
    fail 2 "no nvcc: neither NVCC, nor beside libtorch, nor on the PATH, nor in /usr/local/cuda; install the CUDA toolkit 13"
  configure build-cuda "-Dlibtorch=$libtorch_cuda" -Dcuda=enabled
  compile build-cuda
}

ensure_cuda() {
  if [[ -n ${LIBTORCH:-} ]]; then
    libtorch_cuda=$LIBTORCH
  else
    ensure_environment cuda
    libtorch_cuda=$(torch_in "$environment")
  fi
}
