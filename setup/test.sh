# Building and running the tests.
# shellcheck shell=bash disable=SC2154

# Runs tests of a build folder and keeps their log for the tally: run_tests FOLDER WORDS...
run_tests() {
  local name=$1 log=$root/$1/meson-logs/testlog.json
  shift
  say "testing $name/"
  rm -f "$log"
  # Failures are counted from the log, where a crash or a time-out of meson itself shows as well.
  "$meson" test -C "$root/$name" --no-rebuild --print-errorlogs "$@" </dev/null || true
  logs+=("$name=$log")
}

# What has threads and can do without libtorch, which is not instrumented.
tsan_parts=(base graph model nodes run)

build_sanitized() {
  # Line numbers without variables: with them g++ takes minutes over the templates of a flow graph.
  local common=(-Dtorch=disabled -Dbuildtype=plain -Dcpp_args=-g1)
  configure build-asan "${common[@]}" -Doptimization=0 -Db_sanitize=address,undefined
  compile build-asan
  configure build-tsan "${common[@]}" -Doptimization=1 -Db_sanitize=thread
  local programs=("${tsan_parts[@]/#/tests/}")
  compile build-tsan "${programs[@]/%/_tests}"
}

test_quick() {
  ensure_tools
  with_build_lock build_cpu
  run_tests build --suite quick
}

test_long() {
  ensure_packages long
  ensure_tools
  ensure_cuda
  # Python with torch, torchvision and the rest, for tests that compare with it.
  [[ -n ${LIBTORCH:-} ]] || export SLUICE_PYTHON=$environment/bin/python
  with_build_lock build_cpu
  with_build_lock build_sanitized
  with_build_lock build_cuda
  run_tests build --suite long
  run_tests build-asan
  run_tests build-tsan "${tsan_parts[@]}"
  run_tests build-cuda model cuda
}

run_test_command() {
  local logs=()
  case ${1:-} in
    '') test_quick ;;
    --long) test_long ;;
    *) fail 2 "unknown option $1; usage: ./sluice test [--long]" ;;
  esac
  exec "$python" -I "$root/setup/tally.py" "${logs[@]}"
}
