#!/usr/bin/env bash
# Builds the fuzz targets (fuzz/) and runs them by turns until each has had its CPU time, then prints a table: CPU-minutes
# and executions over all runs, edges covered, size of the corpus, findings. Needs a nightly toolchain and cargo-fuzz. An
# input may take one second of CPU time (a definition five) and 256 MB beyond its length. What takes more, and every panic, is a finding, kept
# in the cache's folder fuzz/artifacts. A target with a finding rests until the file is removed.
#
# The corpus, which begins with fuzz/seeds, and the sums stay in the cache, so a later run goes on.
#
#   scripts/fuzz.sh [TARGET…]   all targets by default
#   --minutes N                 CPU-minutes per target, over all runs (default 30)
#   --turn N                    seconds of a turn (default 300)
#   --table                     only print the table
#   --reset                     forget the sums of these targets, as after a change; the corpus stays
#   FSBENCH_CACHE               the cache, as for setup.sh
#   FSBENCH_FUZZ_FEATURES       features of fuzz/Cargo.toml (default "report", without which `experiment` and `record`
#                               are left out and the build is much shorter)
#   CARGO_TARGET_DIR            another build folder
#
# Several of these scripts can run at once, with different targets.
# Exit status: 0 = no finding, 1 = findings, 2 = a tool is missing or the build failed.
set -euo pipefail

missing() { # MESSAGE REMEDY
  printf 'fuzz: %s\n      %s\n' "$1" "$2" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=30 turn=300 table_only='' reset=''
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) minutes=${2:?--minutes takes a number}; shift 2 ;;
    --turn) turn=${2:?--turn takes a number}; shift 2 ;;
    --table) table_only=1; shift ;;
    --reset) reset=1; shift ;;
    -*) missing "unknown option $1" "See the head of this script." ;;
    *) targets+=("$1"); shift ;;
  esac
done
features=${FSBENCH_FUZZ_FEATURES-report}
# A target and the most bytes of an input: longer ones take longer and find the same.
declare -A most=([definition]=3072 [pgn]=2048 [binpack]=1024 [bulletformat]=1024 [viriformat]=1024 [text]=2048 [foreign_text]=2048 [fsd]=4096 [nnue]=512
  [bullet_raw]=2048 [safetensors]=4096 [service_client]=6144 [uci]=1024 [journal]=4096 [experiment]=4096 [record]=12288)
all=(definition pgn binpack bulletformat viriformat text foreign_text fsd nnue bullet_raw safetensors service_client uci journal)
[ "$features" != report ] || all+=(experiment record)
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [ -n "${most[$target]:-}" ] || missing "there is no target $target." "Targets: ${all[*]}"
done

cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}/fuzz
build=${CARGO_TARGET_DIR:-$cache/target}
mkdir -p "$cache"

# Sums of the runs in $cache/TARGET.runs, whose lines are: seconds of CPU time, executions, edges.
cpu_seconds() { [ ! -f "$cache/$1.runs" ] && echo 0 || awk '{ s += $1 } END { printf "%d", s }' "$cache/$1.runs"; }
findings() { find "$cache/artifacts/$1" -type f 2>/dev/null | wc -l; }
table() {
  printf '%-16s %12s %12s %8s %8s %9s\n' target CPU-minutes executions edges inputs findings
  for target in "${targets[@]}"; do
    [ -f "$cache/$target.runs" ] || continue
    awk -v name="$target" -v inputs="$(find "$cache/corpus/$target" -type f | wc -l)" -v findings="$(findings "$target")" \
      '{ s += $1; n += $2; e = $3 > e ? $3 : e }
       END { printf "%-16s %12.1f %12d %8d %8d %9d\n", name, s / 60, n, e, inputs, findings }' "$cache/$target.runs"
  done
}
if [ -n "$table_only" ]; then
  table
  exit
fi

cargo +nightly --version >/dev/null 2>&1 ||
  missing "there is no nightly toolchain; stable Rust has no sanitizer." "Run: rustup toolchain install nightly --profile minimal"
cargo fuzz --version >/dev/null 2>&1 || missing "cargo-fuzz is missing." "Run: cargo install cargo-fuzz"
[ -z "$reset" ] || for target in "${targets[@]}"; do rm -f "$cache/$target.runs"; done
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
# Inputs are written to memory where there is such a folder.
scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/fuzz.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# One program holds all targets, so that linking is done once.
CARGO_TARGET_DIR=$build cargo +nightly fuzz build --features "$features" --target-dir "$build" any || exit 2

# Fuzzes a target for a turn and adds a line to its runs.
fuzz() { # TARGET
  local target=$1 corpus=$cache/corpus/$1 log=$cache/$1.log spent executions edges
  mkdir -p "$corpus" "$cache/artifacts/$target"
  # Leaks are not looked for: libFuzzer's check takes long, and the library has no memory of its own to free. The clock
  # is generous, since other work may fill the machine; the bound on CPU time is in fuzz/src/bounds.rs.
  TIMEFORMAT='%U %S'
  spent=$({
    time FSBENCH_FUZZ_TARGET=$target TMPDIR=$scratch ASAN_OPTIONS=detect_leaks=0 RAYON_NUM_THREADS=1 \
      nice -n 19 "$build/$host/release/any" "$corpus" "fuzz/seeds/$target" -max_total_time="$turn" -timeout=600 \
      -rss_limit_mb=2048 -malloc_limit_mb=256 -max_len="${most[$target]}" -artifact_prefix="$cache/artifacts/$target/" \
      -report_slow_units=3600 -print_final_stats=1 -verbosity=1 >"$log" 2>&1
  } 2>&1) || true
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  # A finding ends the run without statistics.
  [ -n "$executions" ] || executions=$(sed -n 's/^#\([0-9]*\)\s.*/\1/p' "$log" | tail -n 1)
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -c 6-)
  awk -v executions="${executions:-0}" -v edges="${edges:-0}" '{ print $1 + $2, executions, edges }' <<<"${spent##*$'\n'}" \
    >>"$cache/$target.runs"
}

while :; do
  open=()
  for target in "${targets[@]}"; do
    [ "$(cpu_seconds "$target")" -ge $((60 * minutes)) ] || [ "$(findings "$target")" -gt 0 ] || open+=("$target")
  done
  [ ${#open[@]} -gt 0 ] || break
  for target in "${open[@]}"; do fuzz "$target"; done
done
table
for target in "${targets[@]}"; do
  [ "$(findings "$target")" -eq 0 ] || exit 1
done
