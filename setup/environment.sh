# Private Python environments with meson and libtorch, shared by all checkouts of a user.
# shellcheck shell=bash disable=SC2154
# An environment is named after a hash of what is in it. A virtual environment cannot be moved, so it is made in
# place, and `.complete` is written last: a folder without it was interrupted and is made again.

cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}
python=/usr/bin/python3

# The pins of one environment: environment_pins tools|cpu|cuda
environment_pins() {
  awk -v want="$1" '{ sub(/#.*/, "") } NF >= 2 { n = split($1, names, ","); for (i = 1; i <= n; i++) if (names[i] == want) print $2 }' \
    "$root/setup/versions"
}

environment_folder() {
  local hash
  hash=$({ readlink -f "$python" && environment_pins "$1"; } | sha256sum)
  printf '%s/%s-%s\n' "$cache" "$1" "${hash:0:12}"
}

# Size on disk and what the installation takes at its peak, in MB.
environment_size() {
  case $1 in
    tools) echo 40 100 ;;
    cpu) echo 1300 2500 ;;
    cuda) echo 5900 12000 ;;
  esac
}

check_space() {
  local need=$1 have
  have=$(($(df -Pk "$cache" | awk 'NR == 2 { print $4 }') / 1024))
  ((have >= need)) ||
    fail 2 "not enough disk space: the set-up needs $need MB in $cache, which has $have MB free. Make room, or set SLUICE_CACHE to a folder elsewhere."
}

# Makes the environment unless it is there, and sets `environment` to its folder: ensure_environment tools|cpu|cuda
ensure_environment() {
  local kind=$1 size peak what=meson
  environment=$(environment_folder "$kind")
  [[ -e $environment/.complete ]] && return
  mkdir -p "$cache" || fail 2 "cannot make $cache; set SLUICE_CACHE to a folder that can be written"
  local lock_fd
  exec {lock_fd}>>"$environment.lock"
  lock "$lock_fd" "set-up of $environment"
  if [[ ! -e $environment/.complete ]]; then
    read -r size peak < <(environment_size "$kind")
    check_space "$peak"
    [[ $kind == cpu ]] && what="meson and libtorch"
    [[ $kind == cuda ]] && what="libtorch with CUDA, nvcc and torchvision"
    say "installing $what into $environment (about $size MB on disk)"
    make_environment "$kind" "$environment"
  fi
  exec {lock_fd}>&-
}

make_environment() {
  local kind=$1 folder=$2 pins options=(--no-deps)
  mapfile -t pins < <(environment_pins "$kind")
  [[ $kind == cuda ]] && options=()
  rm -rf "$folder" "$folder.tmp"
  # Downloads stay in a cache of our own until all is installed: after an interruption, finished ones are not repeated.
  mkdir -p "$folder.tmp" "$folder.pip"
  "$python" -m venv "$folder" >&2 || fail 1 "$python -m venv $folder failed; see above"
  TMPDIR=$folder.tmp PIP_CACHE_DIR=$folder.pip "$folder/bin/python" -I -m pip --disable-pip-version-check install \
    --only-binary :all: "${options[@]}" "${pins[@]}" >&2 </dev/null ||
    fail 1 "pip could not install ${pins[*]}; see above. Check the network (pip's own settings apply) and run the same command again."
  rm -rf "$folder.tmp" "$folder.pip"
  touch "$folder/.complete"
  say "$folder is complete"
}
