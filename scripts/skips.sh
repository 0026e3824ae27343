#!/usr/bin/env bash
# Prints one line with the skipped tests and their reasons, or nothing if no test was skipped. $1 is the file that the tests
# wrote to (FSBENCH_SKIPS).
set -euo pipefail
[ -s "$1" ] || exit 0
count=$(wc -l <"$1")
noun=tests
[ "$count" != 1 ] || noun=test
printf '%d %s skipped: %s\n' "$count" "$noun" "$(sort "$1" | paste -sd '@' | sed 's/@/; /g')"
