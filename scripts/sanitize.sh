#!/usr/bin/env bash
# Runs the library's unit tests, all but the trainer's, under AddressSanitizer: it finds reads and writes outside of what
# was allocated. Needs a nightly toolchain. Builds into a folder of its own in the cache, minutes the first time.
#
#   scripts/sanitize.sh [TEST…]   only tests whose name has one of these in it
#   FSBENCH_CACHE                 the cache, as for setup.sh
#   CARGO_TARGET_DIR              another folder to build into
#
# Exit status: 0 no finding, 1 a test failed or the sanitizer found something, 2 the toolchain is missing.
set -euo pipefail

missing() { # what is missing, how to get it
  printf 'sanitize: %s\n          %s\n' "$1" "$2" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$(uname -s)" = Linux ] || missing "AddressSanitizer is set up for Linux here." "Run this on Linux."
command -v rustup >/dev/null || missing "rustup is missing; it brings nightly." "Install it: https://rustup.rs"
rustup toolchain list | grep -q '^nightly' ||
  missing "there is no nightly toolchain; the sanitizer is not in stable." "Run: rustup toolchain install nightly --profile minimal"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$host/lib
compgen -G "$runtime/librustc*asan*" >/dev/null ||
  missing "nightly has no AddressSanitizer runtime for $host." "Use a toolchain for x86_64 or aarch64, unknown-linux-gnu."

cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sanitize}
# Besides, the standard library checks what its unsafe functions ask for: alignment, lengths, no overlap.
export RUSTFLAGS="-Zsanitizer=address -Zub-checks=yes ${RUSTFLAGS:-}"
# A finding ends the run. Leaks are none: a test forgets what a killed process would leave behind.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1}
# With --target build scripts and macros are built without the sanitizer.
cargo +nightly test --release --target "$host" --no-default-features --lib -- "$@" || exit 1
echo "sanitize: no finding"
