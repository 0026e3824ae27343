#!/usr/bin/env bash
# Sets everything up, then runs the main job on the sample that comes with fsbench: games → samples → training of seven
# feature sets → quantised networks → measures → report. Finished runs are kept: the second time it only reports. Results go
# to results/local/quickstart, which git ignores; results/quickstart is the example that comes with fsbench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
printf 'quickstart: building (about fifteen minutes on two cores the first time)\n' >&2
cargo build --release
cargo run --quiet --release -- run experiments/quickstart.toml "$@"
