#!/usr/bin/env bash
# Runs the library's unit tests under AddressSanitizer, which finds reads and writes outside
# allocated memory, or with --thread under ThreadSanitizer, which finds unsynchronised accesses. Needs a nightly
# toolchain. Builds into its own folder in the cache; the first build takes minutes.
#
#   scripts/sanitize.sh [TEST…]            run only the tests whose name contains one of these words
#   scripts/sanitize.sh --thread [TEST…]   ThreadSanitizer; by default over the service's tests
#   FSBENCH_SANITIZE_FEATURES              cargo features, such as "report" (search, matches, experiments, reports; polars takes
#                                          long to build) [default: none: engine, features, formats, service and networks]
#   FSBENCH_CACHE                          the cache, as for setup.sh
#   CARGO_TARGET_DIR                       another build folder
#
# AddressSanitizer: of the packages, fsbench alone is instrumented, with what it inlines; blocks that others allocate are
# guarded too. ThreadSanitizer: all packages are instrumented, but not the standard library, which would have to be
# rebuilt (rust-src): synchronisation that is not inlined from it is invisible, so the suppressions below hide reports
# whose stacks lie in it, and some races with them. With rust-src the whole is checked by:
#   RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu \
#     --no-default-features --lib service::
# Undefined behaviour in the pure Rust parts is Miri's subject (rustup +nightly component add miri rust-src):
#   cargo +nightly miri test --no-default-features --lib chess:: features::syntax data::record
#
# Exit status: 0 = no finding, 1 = a test failed or the sanitizer found an error, 2 = the toolchain is missing.
set -euo pipefail

missing() { # MESSAGE REMEDY
  printf 'sanitize: %s\n          %s\n' "$1" "$2" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
sanitizer=address
if [ "${1:-}" = --thread ]; then
  sanitizer=thread
  shift
fi
[ "$(uname -s)" = Linux ] || missing "This script supports sanitizers on Linux only." "Run this on Linux."
command -v rustup >/dev/null || missing "rustup is missing; it installs the nightly toolchain." "Install it: https://rustup.rs"
rustup toolchain list | grep -q '^nightly' ||
  missing "there is no nightly toolchain; stable Rust has no sanitizer." "Run: rustup toolchain install nightly --profile minimal"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$host/lib
compgen -G "$runtime/librustc*${sanitizer:0:1}san*" >/dev/null ||
  missing "nightly has no runtime of the $sanitizer sanitizer for $host." "Use a toolchain for x86_64 or aarch64, unknown-linux-gnu."

cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}
if [ "$sanitizer" = thread ]; then
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sanitize-thread}
  suppressions=$(mktemp)
  trap 'rm -f "$suppressions"' EXIT
  # The standard library's own memory orders, seen from instrumented code: reference counts end with a fence, which
  # ThreadSanitizer does not know, and channels, mutexes and thread handles wait in code that is not instrumented.
  printf 'race:%s\n' 'alloc::sync::Arc' 'std::thread' 'std::sync' 'std::sys' 'crossbeam' 'rayon_core' >"$suppressions"
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:suppressions=$suppressions}
  # The flag accepts a standard library that was built without the sanitizer.
  export RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer'
  [ $# -gt 0 ] || set -- service::
  cargo +nightly test --release --target "$host" --no-default-features --features "${FSBENCH_SANITIZE_FEATURES:-}" --lib -- "$@" || exit 1
  echo "sanitize: no finding"
  exit
fi
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sanitize}
# `ub-checks` makes the standard library check the preconditions of its unsafe functions: alignment, length, no overlap.
flags='["-Zsanitizer=address", "-Zub-checks=yes"]'
# A finding ends the run. Leaks are not reported: a test leaks on purpose what a killed process would leave behind.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1}
# With --target, build scripts and macros are built without the sanitizer.
cargo +nightly test --release --target "$host" --no-default-features --features "${FSBENCH_SANITIZE_FEATURES:-}" --lib \
  -Zprofile-rustflags --config "profile.release.package.fsbench.rustflags=$flags" \
  --config 'profile.release.package."*".opt-level=1' -- "$@" || exit 1
echo "sanitize: no finding"
