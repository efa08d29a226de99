#!/usr/bin/env bash
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes one target after the other, also those after one that failed. The last lines say what failed,
# with the seed of a night, and for each target how long it took.
#
#   hack/pieces.sh TARGET...
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
summary=()
for target in "$@"; do
  echo "--- $target"
  began=$SECONDS
  result=ok
  "${MAKE:-make}" --no-print-directory "$target" 2>&1 | tee -a "$log" || { result=FAILED status=1; }
  took=$((SECONDS - began))
  summary+=("$(printf '%-16s %3d:%02d  %s' "$target" $((took / 60)) $((took % 60)) "$result")")
done
echo "--- what failed"
grep -E '^ *--- FAIL|^FAIL[[:space:]]|^panic:|^[[:space:]]+Test[^ ]+ \([0-9hms]+\)$|CELSET_FAULTS_SEED=' "$log"
[ -z "${CELSET_NIGHTLY:-}" ] || echo "the same night again: make nightly NIGHTLY=$CELSET_NIGHTLY"
echo "--- minutes"
printf '%s\n' "${summary[@]}"
printf '%-16s %3d:%02d\n' all $((SECONDS / 60)) $((SECONDS % 60))
echo "$(grep -cE '^ok[[:space:]]' "$log") passed, $(grep -cE '^FAIL[[:space:]]+[^[:space:]]+' "$log") failed"
exit "$status"
