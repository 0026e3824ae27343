#!/usr/bin/env bash
# Sets everything up, then runs a whole experiment on the sample games that come with fsbench: games → samples → training
# of seven feature sets → quantised networks → measures → report. One row is trained by libtorch (fsbench-tch), the others
# by fsbench's own kernels. Finished runs are kept, so a second call only reports. Results go to results/local/quickstart,
# which git ignores; results/quickstart holds the example results of the repository.
#
#   quickstart.sh [--without-tch] [OPTIONS OF `fsbench run`]
#
# --without-tch fetches no libtorch, builds fsbench alone and leaves that row out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
row='piece by tch'
options=()
if [ "${1:-}" = --without-tch ]; then
  shift
  export FSBENCH_WITHOUT_TCH=1
fi
. scripts/setup.sh
if [ ${#features[@]} -eq 0 ]; then
  options=(--without "$row")
  printf "quickstart: without libtorch; the row '%s' is left out\n" "$row" >&2
fi
printf 'quickstart: building (seven to twelve minutes on two cores the first time)\n' >&2
cargo build --release ${features[@]+"${features[@]}"}
"$CARGO_TARGET_DIR/release/fsbench" run experiments/quickstart.toml ${options[@]+"${options[@]}"} "$@"
