#!/usr/bin/env bash
# Shows in one line which tests were skipped and why; nothing when none was. $1: the file they wrote to (FSBENCH_SKIPS).
set -euo pipefail
[ -s "$1" ] || exit 0
printf '%d tests skipped: %s\n' "$(wc -l <"$1")" "$(sort "$1" | paste -sd '@' | sed 's/@/; /g')"
