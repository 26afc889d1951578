# checks.sh - sourced: counts checks. Needs `work`, a directory.
passed=0 failed=0

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/check" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$name"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$name"
    sed 's/^/        /' "$work/check" | tail -n 20
  fi
}

tally() {
  printf '%s passed, %s failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
}
