#!/usr/bin/env bash
# Runs the library's unit tests under AddressSanitizer, which finds reads and writes outside
# allocated memory, or with --thread under ThreadSanitizer, which finds unsynchronised accesses. Needs a nightly
# toolchain. Builds into its own folder in the cache; the first build takes minutes.
#
#   scripts/sanitize.sh [TEST…]            run only the tests whose name contains one of these words
#   scripts/sanitize.sh --thread [TEST…]   ThreadSanitizer; by default over the tests of the service and the trainer
#   FSBENCH_SANITIZE_FEATURES              cargo features, such as "report" (search, matches, experiments, reports; polars takes
#                                          long to build) [default: none: engine, features, formats, service and networks]
#   FSBENCH_CACHE                          the cache, as for setup.sh
#   CARGO_TARGET_DIR                       another build folder
#
# AddressSanitizer: of the packages, fsbench alone is instrumented, with what it inlines; blocks that others allocate are
# guarded too. ThreadSanitizer: all packages are instrumented, but not the standard library, which would have to be rebuilt
# (rust-src): scripts/std_sync.c tells the sanitizer what that synchronises, and the suppressions below hide the little
# that it cannot see. With rust-src the whole is checked by:
#   RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu \
#     --no-default-features --lib service::
# Both leave out service::model, whose model checker switches stacks by itself; it looks for races on its own.
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
  # Drops of an `Arc` order themselves by a fence, which ThreadSanitizer does not know. What initialises a `OnceLock` is
  # marked as done a moment before scripts/std_sync.c says so. The harness's channel is not instrumented.
  printf 'race:%s\n' drop_slow 'alloc::sync::Arc*Drop>::drop' call_once_force test::event::CompletedTest >"$suppressions"
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:suppressions=$suppressions}
  names=$(nm -D --defined-only "$runtime"/libstd-*.so | sed -n 's/.* T //p')
  definitions=() wraps=()
  while read -r name pattern; do
    symbol=$(grep -E "$pattern" <<<"$names" | head -n 1)
    [ -n "$symbol" ] || missing "this nightly's standard library has no $name." "scripts/std_sync.c has to follow it."
    definitions+=("-D$name=$symbol")
    wraps+=("-Clink-arg=-Wl,--wrap=$symbol")
  done <<'END'
MUTEX_LOCK 5mutex5futex.*14lock_contended$
READ_LOCK 6rwlock5futex.*14read_contended$
WRITE_LOCK 6rwlock5futex.*15write_contended$
CONDVAR_WAIT 7condvar5futex.*7Condvar4wait$
CONDVAR_WAIT_TIMEOUT 7condvar5futex.*12wait_timeout$
ONCE_CALL 4once5futex.*4Once4call$
PARK 6Thread4park$
PARK_TIMEOUT 6Thread12park_timeout$
SCOPE_END ScopeData29decrement_num_running_threads$
END
  mkdir -p "$CARGO_TARGET_DIR"
  cc -O1 -fPIC -Wall -Werror "${definitions[@]}" -c scripts/std_sync.c -o "$CARGO_TARGET_DIR/std_sync.o"
  # The flags accept a standard library that was built without the sanitizer, and replace fences of crossbeam.
  export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg crossbeam_sanitize_thread
    -Clink-arg=$CARGO_TARGET_DIR/std_sync.o ${wraps[*]}"
  [ $# -gt 0 ] || set -- service:: train::
  cargo +nightly test --release --target "$host" --no-default-features --features "${FSBENCH_SANITIZE_FEATURES:-}" --lib -- --skip service::model "$@" || exit 1
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
  --config 'profile.release.package."*".opt-level=1' -- --skip service::model "$@" || exit 1
echo "sanitize: no finding"
