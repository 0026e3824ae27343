#!/usr/bin/env bash
# Sets everything up, then runs the tests. Tests that want larger data look where FSBENCH_DATA points and skip without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
# The Python client's test needs numpy; it has its own copy so that nobody's Python is changed.
numpy=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/python
if ! PYTHONPATH=$numpy python3 -c 'import numpy' 2>/dev/null; then
  printf 'test: fetching numpy into %s for the Python client\n' "$numpy" >&2
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$numpy" numpy ||
    printf 'test: no numpy; the Python client is not tested\n' >&2
fi
export PYTHONPATH=$numpy${PYTHONPATH:+:$PYTHONPATH}
exec cargo test --release "$@"
