#!/bin/sh
# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command that may be silent for minutes, and says what it is about: at once if it is not
# over in a second, and every 20 seconds.
#
#   hack/announce.sh WHAT COMMAND [ARGUMENT]...
what=$1
shift
(
  sleep 1 >/dev/null 2>&1 && echo "$what ..." >&2
  seconds=0
  while sleep 20 >/dev/null 2>&1; do
    seconds=$((seconds + 20))
    echo "still $what, ${seconds}s" >&2
  done
) &
line=$!
trap 'kill "$line" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
"$@"
