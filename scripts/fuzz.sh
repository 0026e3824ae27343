#!/usr/bin/env bash
# Builds the fuzz targets (fuzz/) and runs them one after the other, then prints a table: executions, edges covered, size
# of the corpus, findings. Needs a nightly toolchain and cargo-fuzz. An input may take five seconds of CPU time (targets
# are instrumented and hardly optimised) and 256 MB beyond its length. What takes more, and every panic, is a finding,
# kept in the cache's folder fuzz/artifacts. The corpus is kept in the cache, too, and grows from run to run; it begins
# with fuzz/seeds.
#
#   scripts/fuzz.sh [TARGET…]   all targets by default
#   --minutes N                 minutes per target (default 30)
#   FSBENCH_CACHE               the cache, as for setup.sh
#   FSBENCH_FUZZ_FEATURES       features of fuzz/Cargo.toml (default "report", without which `experiment` and `record`
#                               are left out and the build is much shorter)
#   CARGO_TARGET_DIR            another build folder
#
# Exit status: 0 = no finding, 1 = findings, 2 = a tool is missing or the build failed.
set -euo pipefail

missing() { # MESSAGE REMEDY
  printf 'fuzz: %s\n      %s\n' "$1" "$2" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=30
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) minutes=${2:?--minutes takes a number}; shift 2 ;;
    -*) missing "unknown option $1" "See the head of this script." ;;
    *) targets+=("$1"); shift ;;
  esac
done
cargo +nightly --version >/dev/null 2>&1 ||
  missing "there is no nightly toolchain; stable Rust has no sanitizer." "Run: rustup toolchain install nightly --profile minimal"
cargo fuzz --version >/dev/null 2>&1 || missing "cargo-fuzz is missing." "Run: cargo install cargo-fuzz"
features=${FSBENCH_FUZZ_FEATURES-report}
all=(definition pgn binpack bulletformat text fsd nnue bullet_raw safetensors service_client uci journal)
[ "$features" != report ] || all+=(experiment record)
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")

cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/fuzz
build=${CARGO_TARGET_DIR:-$cache/target}
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
# Inputs are written to memory where there is such a folder.
scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/fuzz.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# One program holds all targets, so that linking is done once.
CARGO_TARGET_DIR=$build cargo +nightly fuzz build --features "$features" --target-dir "$build" any || exit 2

status=0
rows=()
for target in "${targets[@]}"; do
  corpus=$cache/corpus/$target findings=$cache/artifacts/$target log=$cache/$target.log
  mkdir -p "$corpus" "$findings"
  # Leaks are not looked for: libFuzzer's check takes long, and the library has no memory of its own to free. The clock
  # is generous, since other work may fill the machine; the bound on CPU time is in fuzz/src/bounds.rs.
  FSBENCH_FUZZ_TARGET=$target TMPDIR=$scratch ASAN_OPTIONS=detect_leaks=0 RAYON_NUM_THREADS=1 nice -n 19 "$build/$host/release/any" \
    "$corpus" "fuzz/seeds/$target" -max_total_time=$((60 * minutes)) -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=256 \
    -max_len=65536 -artifact_prefix="$findings/" -print_final_stats=1 -verbosity=1 >"$log" 2>&1 || status=1
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -c 6-)
  rows+=("$(printf '%-16s %8s %12s %8s %8s %9s' "$target" "$minutes" "${executions:-0}" "${edges:-0}" \
    "$(find "$corpus" -type f | wc -l)" "$(find "$findings" -type f | wc -l)")")
done
printf '%-16s %8s %12s %8s %8s %9s\n' target minutes executions edges inputs findings
printf '%s\n' "${rows[@]}"
exit "$status"
