#!/bin/bash
# The set-up script against fake Debian tools and a fake Python: no download, no root, no change to the machine.
# shellcheck disable=SC2016,SC2028 # the bodies of the fakes are expanded when they run
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=/dev/null
. "$here/check.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset LIBTORCH CXX NVCC

# fake FOLDER NAME: a command read from stdin.
fake() {
  { echo '#!/bin/bash'; cat; } >"$1/$2"
  chmod +x "$1/$2"
}

# A copy of the script with an environment of its own. `calls` records what the fakes were asked to do.
fresh() {
  cd "$(mktemp -d -p "$scratch")" || exit
  cp -r "$here/../../sluice" "$here/../../setup" .
  mkdir bin calls
  export SLUICE_CACHE=$PWD/cache PATH=$PWD/bin:/usr/bin:/bin calls=$PWD/calls
  # Instead of /usr/bin/python3: makes a "virtual environment" whose python writes a meson that writes a build folder.
  sed -i "s,^python=.*,python=$PWD/bin/python3," setup/environment.sh
  fake bin dpkg-query <<'END'
for word; do case $word in -*|*Status*) ;; *) echo "installed $word" ;; esac; done
END
  fake bin python3 <<'END'
echo venv >>"$calls/venv"
mkdir -p "$3/bin" "$3/lib/python3.11/site-packages/torch"
cp "$(dirname "$0")/venv-python" "$3/bin/python"
END
  fake bin venv-python <<'END'
echo "$*" >>"$calls/pip"
[[ -e $calls/no-network ]] && { echo 'no network' >&2; exit 1; }
cp "$(dirname "$calls")/bin/fake-meson" "$(dirname "$0")/meson"
END
  fake bin fake-meson <<'END'
echo "$*" >>"$calls/meson"
[[ -e $calls/interrupt-meson ]] && kill -INT "$PPID" && exit 130
touch "$2/build.ninja"
END
  # Dry runs tell that there is nothing to do once there is a program.
  fake bin ninja <<'END'
if [[ -e $2/sluice ]]; then echo 'ninja: no work to do.'; exit 0; fi
[[ " $* " == *' -n '* ]] && exit 0
echo compile >>"$calls/ninja"
printf '#!/bin/bash\necho "ran $* in $PWD"\n' >"$2/sluice"
chmod +x "$2/sluice"
END
}

count() {
  if [[ -e $calls/$1 ]]; then wc -l <"$calls/$1"; else echo 0; fi
}

expect() {
  [[ $2 == "$3" ]] || { echo "$1: expected '$3', got '$2'"; return 1; }
}

without_two_packages() {
  fake bin dpkg-query <<'END'
for word; do case $word in -*|*Status*|libtbb-dev) ;; doctest-dev) echo "config-files $word" ;; *) echo "installed $word" ;; esac; done
exit 1
END
}

missing_packages_without_root() {
  fresh
  without_two_packages
  echo 'echo 1000' | fake bin id
  echo 'exit 1' | fake bin sudo
  echo 'echo "$*" >>"$calls/apt"' | fake bin apt-get
  local output status
  output=$(./sluice train </dev/null 2>&1)
  status=$?
  expect status "$status" 2 || return
  expect message "$output" "sluice: Debian packages are missing: doctest-dev libtbb-dev. Installing them takes root; as root run: apt-get update && apt-get install --no-install-recommends doctest-dev libtbb-dev" || return
  expect "calls of apt-get" "$(count apt)" 0 || return
  expect "files made" "$(ls)" $'bin\ncalls\nsetup\nsluice'
}

packages_of_the_long_tests() {
  fresh
  fake bin dpkg-query <<'END'
for word; do case $word in -*|*Status*|clang) ;; *) echo "installed $word" ;; esac; done
END
  echo 'echo 1000' | fake bin id
  echo 'exit 1' | fake bin sudo
  ./sluice build </dev/null || return
  local output status
  output=$(./sluice test --long </dev/null 2>&1)
  status=$?
  expect status "$status" 2 || return
  expect message "$output" "sluice: Debian packages are missing: clang. Installing them takes root; as root run: apt-get update && apt-get install --no-install-recommends clang"
}

missing_packages_with_root() {
  fresh
  without_two_packages
  echo 'echo 0' | fake bin id
  echo 'echo "dpkg $*" >>"$calls/apt"' | fake bin dpkg
  echo 'echo "$*" >>"$calls/apt"' | fake bin apt-get
  ./sluice build </dev/null || return
  expect "calls" "$(<calls/apt)" "dpkg --configure -a
-o DPkg::Lock::Timeout=600 update
-o DPkg::Lock::Timeout=600 install -y --no-install-recommends doctest-dev libtbb-dev"
}

help_without_set_up() {
  fresh
  without_two_packages
  ./sluice --help | grep 'usage: ./sluice' && expect "files made" "$(ls)" $'bin\ncalls\nsetup\nsluice'
}

first_use_builds_and_runs() {
  fresh
  local start=$PWD output
  mkdir elsewhere && cd elsewhere && ln -s ../sluice link || return
  output=$(./link plan 'a b.toml' 2>/dev/null) || return
  expect output "$output" "ran plan a b.toml in $start/elsewhere"
}

second_call_does_nothing() {
  fresh
  ./sluice build || return
  local output
  output=$(./sluice plan 2>&1) || return
  expect output "$output" "ran plan in $PWD" || return
  expect "environments, pip, meson, ninja" "$(count venv) $(count pip) $(count meson) $(count ninja)" "1 1 1 1"
}

interrupted_environment_is_made_again() {
  fresh
  touch calls/no-network
  ./sluice build && { echo 'succeeded without pip'; return 1; }
  local folder
  folder=$(find cache -name 'cpu-*' -type d -not -name '*.*')
  touch "$folder/left-over" && rm calls/no-network
  ./sluice build || return
  [[ ! -e $folder/left-over && -e $folder/.complete && ! -e $folder.tmp && ! -e $folder.pip ]] || { ls -a cache "$folder"; return 1; }
  expect "environments" "$(count venv)" 2
}

other_pins_get_an_environment_of_their_own() {
  fresh
  ./sluice build || return
  sed -i 's/meson==[0-9.]*/meson==9.9/' setup/versions
  ./sluice build || return
  expect "environments" "$(find cache -name .complete | wc -l)" 2 || return
  grep -q 'meson==9.9' calls/pip && expect "configured" "$(count meson)" 2
}

interrupted_configuration_is_made_again() {
  fresh
  touch calls/interrupt-meson
  ./sluice build && { echo 'succeeded without meson'; return 1; }
  [[ ! -e build/build.ninja ]] || return
  rm calls/interrupt-meson
  ./sluice build && expect "configured" "$(count meson)" 2
}

another_compiler_configures_again() {
  fresh
  ./sluice build && CXX=clang++ ./sluice build && CXX=clang++ ./sluice build && expect "configured" "$(count meson)" 2
}

a_build_folder_made_by_hand_is_kept() {
  fresh
  mkdir build && touch build/build.ninja
  ./sluice build && expect "configured" "$(count meson)" 0
}

full_disk_is_told_before_the_download() {
  fresh
  echo 'printf "Filesystem 1024-blocks Used Available\nx 9 9 1024\n"' | fake bin df
  local output status
  output=$(./sluice build 2>&1)
  status=$?
  expect status "$status" 2 || return
  [[ $output == *'needs 2500 MB'*'has 1 MB free'*SLUICE_CACHE* ]] || { echo "$output"; return 1; }
  expect "calls of pip" "$(count pip)" 0
}

# The one that comes second waits, says so, and finds the work done.
two_at_once_set_up_one_after_the_other() {
  fresh
  local folder output
  folder=$(root=$PWD && . setup/environment.sh && environment_folder cpu)
  mkdir cache
  exec 8>>"$folder.lock"
  flock 8
  ./sluice build >out 2>&1 8>&- &
  until grep -q waiting out 2>/dev/null; do sleep 0.05; done
  output=$(<out)
  expect "calls of pip" "$(count pip)" 0 || return
  mkdir -p "$folder/bin" && touch "$folder/.complete" && cp bin/fake-meson "$folder/bin/meson"
  exec 8>&-
  wait $! || return
  expect output "$output" "sluice: waiting for another set-up of $folder to finish" || return
  expect "calls of pip" "$(count pip)" 0
}

# A program that runs for days must not hold up the next build.
the_program_holds_no_lock() {
  fresh
  ./sluice build || return
  printf '#!/bin/bash\nflock -n "%s" echo free\n' "$PWD" >build/sluice
  expect "the source folder" "$(./sluice x)" free
}

bad_options_are_refused() {
  fresh
  local words
  for words in 'build --cdua' 'test --lnog'; do
    # shellcheck disable=SC2086
    ./sluice $words
    expect "status of $words" "$?" 2 || return
  done
}

check "missing packages without root: named, status 2, nothing changed" missing_packages_without_root
check "packages of the long tests: asked for by them alone" packages_of_the_long_tests
check "missing packages with root: installed" missing_packages_with_root
check "help needs no set-up" help_without_set_up
check "first use builds and runs, from any folder and through a link" first_use_builds_and_runs
check "a second call does nothing but run" second_call_does_nothing
check "an interrupted environment is made again" interrupted_environment_is_made_again
check "other pins get an environment of their own" other_pins_get_an_environment_of_their_own
check "an interrupted configuration is made again" interrupted_configuration_is_made_again
check "another compiler configures again" another_compiler_configures_again
check "a build folder made by hand is kept" a_build_folder_made_by_hand_is_kept
check "a full disk is told before the download" full_disk_is_told_before_the_download
check "two at once set up one after the other" two_at_once_set_up_one_after_the_other
check "the program holds no lock" the_program_holds_no_lock
check "bad options are refused" bad_options_are_refused
finish setup
