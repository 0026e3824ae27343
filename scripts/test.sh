#!/usr/bin/env bash
# Sets everything up, then runs the tests. Tests on larger data look for it in the folder FSBENCH_DATA. Tests that lack data
# or a program are skipped and listed at the end. With FSBENCH_REQUIRE=1, a test fails if it is skipped although this
# machine has what it lacks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
# The Python client's test needs numpy. It is installed in the cache, so that the user's Python stays unchanged.
numpy=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/python
if ! PYTHONPATH=$numpy python3 -c 'import numpy' 2>/dev/null; then
  printf 'test: fetching numpy into %s for the Python client\n' "$numpy" >&2
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$numpy" numpy ||
    printf 'test: no numpy; the Python client is not tested\n' >&2
fi
export PYTHONPATH=$numpy${PYTHONPATH:+:$PYTHONPATH}

# Prints the names of the optional data and programs that this machine has.
available() {
  [ ! -d "${FSBENCH_DATA:-}" ] || printf 'data '
  ! { stockfish quit || /usr/games/stockfish quit; } >/dev/null 2>&1 || printf 'stockfish '
  ! /usr/games/stockfish quit 2>/dev/null | grep -q 'Stockfish 15\.1 ' || printf 'stockfish-15.1 '
  ! node --version >/dev/null 2>&1 || printf 'node '
  ! npm view stockfish version >/dev/null 2>&1 || printf 'npm '
  ! python3 --version >/dev/null 2>&1 || printf 'python '
  ! python3 -c 'import numpy' 2>/dev/null || printf 'numpy '
  ! python3 -c 'import torch' 2>/dev/null || printf 'torch '
  ! unshare --user --map-root-user --mount true 2>/dev/null || printf 'namespaces '
}
if [ "${FSBENCH_REQUIRE:-}" = 1 ]; then
  FSBENCH_REQUIRE=$(available)
  export FSBENCH_REQUIRE
fi

FSBENCH_SKIPS=$(mktemp)
export FSBENCH_SKIPS
trap 'rm -f "$FSBENCH_SKIPS"' EXIT
status=0
cargo test --release "$@" || status=$?
scripts/skips.sh "$FSBENCH_SKIPS"
exit "$status"
