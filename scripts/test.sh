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
  python3 -m pip install --quiet --target "$numpy" numpy ||
    printf 'test: no numpy; the Python client is not tested\n' >&2
fi
export PYTHONPATH=$numpy${PYTHONPATH:+:$PYTHONPATH}

# NVRTC compiles the GPU's kernels without a GPU: of the CUDA of libtorch 2.11. Downloads 90 MB, keeps 210.
export FSBENCH_NVRTC=${FSBENCH_NVRTC:-${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/nvrtc}
if [ "${FSBENCH_WITHOUT_TCH:-}" != 1 ] && [ "$(uname -sm)" = "Linux x86_64" ] && [ ! -d "$FSBENCH_NVRTC/nvidia" ]; then
  printf 'test: fetching NVRTC into %s\n' "$FSBENCH_NVRTC" >&2
  python3 -m pip install --quiet --no-deps \
    --target "$FSBENCH_NVRTC" 'nvidia-cuda-nvrtc==13.0.*' ||
    printf 'test: no NVRTC; the kernels are not compiled for GPUs\n' >&2
fi

# Builds the Python package into the cache, unless it is newer than its sources.
package=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/python-package
build_package() {
  local sources=(src feature_sets build.rs Cargo.toml Cargo.lock scripts/python/{pyproject.toml,build_backend.py,src})
  [ -e "$package/.built" ] && [ -z "$(find "${sources[@]}" -newer "$package/.built" -print -quit)" ] && return
  rm -rf "$package"
  # The wheel gets the program that the tests before have built.
  FSBENCH_PROGRAM=$CARGO_TARGET_DIR/release/fsbench python3 -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$package/wheel" ./scripts/python &&
    python3 -m pip install --quiet --no-deps --target "$package" \
      "$package"/wheel/*.whl && touch "$package/.built"
}

# Runs the package's tests. The arguments are those of `pytest`.
test_package() {
  local module
  for module in pytest mypy chess; do
    python3 -c "import $module" 2>/dev/null ||
      python3 -m pip install --quiet --upgrade --target "$numpy" \
        "$module" || [ "$module" != pytest ] || return
  done
  build_package || return
  PYTHONPATH=$package:$PYTHONPATH FSBENCH_WHEEL=$(echo "$package"/wheel/*.whl) \
    FSBENCH_PROGRAM=$CARGO_TARGET_DIR/release/fsbench python3 -m pytest -q -rs scripts/python "$@"
}

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
  [ ! -d "$FSBENCH_NVRTC/nvidia" ] || printf 'nvrtc '
  ! scripts/slurm.sh check 2>/dev/null || printf 'slurm '
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
cargo test --release ${features[@]+"${features[@]}"} --no-fail-fast "$@" || status=$?
# With arguments, which choose among cargo's tests, the package is left out.
if [ $# -gt 0 ]; then
  :
elif python3 -c 'import sys, numpy; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && python3 -m pip --version >/dev/null 2>&1; then
  test_package || status=$?
else
  printf 'test: no python3 3.10 with pip and numpy; the Python package is not tested\n' >&2
fi
scripts/skips.sh "$FSBENCH_SKIPS"
exit "$status"
