#!/usr/bin/env bash
# Runs the library's unit tests, except the trainer's, under AddressSanitizer, which finds reads and writes outside
# allocated memory. Needs a nightly toolchain. Builds into its own folder in the cache; the first build takes minutes.
# Of the packages, fsbench alone is instrumented, with what it inlines; blocks that others allocate are guarded too.
#
#   scripts/sanitize.sh [TEST…]   run only the tests whose name contains one of these words
#   FSBENCH_CACHE                 the cache, as for setup.sh
#   CARGO_TARGET_DIR              another build folder
#
# Exit status: 0 = no finding, 1 = a test failed or the sanitizer found an error, 2 = the toolchain is missing.
set -euo pipefail

missing() { # MESSAGE REMEDY
  printf 'sanitize: %s\n          %s\n' "$1" "$2" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$(uname -s)" = Linux ] || missing "This script supports AddressSanitizer on Linux only." "Run this on Linux."
command -v rustup >/dev/null || missing "rustup is missing; it installs the nightly toolchain." "Install it: https://rustup.rs"
rustup toolchain list | grep -q '^nightly' ||
  missing "there is no nightly toolchain; stable Rust has no sanitizer." "Run: rustup toolchain install nightly --profile minimal"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$host/lib
compgen -G "$runtime/librustc*asan*" >/dev/null ||
  missing "nightly has no AddressSanitizer runtime for $host." "Use a toolchain for x86_64 or aarch64, unknown-linux-gnu."

cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sanitize}
# `ub-checks` makes the standard library check the preconditions of its unsafe functions: alignment, length, no overlap.
flags='["-Zsanitizer=address", "-Zub-checks=yes"]'
# A finding ends the run. Leaks are not reported: a test leaks on purpose what a killed process would leave behind.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1}
# With --target, build scripts and macros are built without the sanitizer.
cargo +nightly test --release --target "$host" --no-default-features --features report --lib \
  -Zprofile-rustflags --config "profile.release.package.fsbench.rustflags=$flags" \
  --config 'profile.release.package."*".opt-level=1' -- "$@" || exit 1
echo "sanitize: no finding"
