# check NAME FUNCTION...: runs a test case in a subshell, shows what it printed if it fails. finish SUITE: sums up.
# shellcheck shell=bash
passed=0 failed=0

check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n%s\n' "$name" "$output"
  fi
}

finish() {
  echo "[$1] test cases: $((passed + failed)) | $passed passed | $failed failed"
  exit $((failed > 0))
}
