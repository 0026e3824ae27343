#!/usr/bin/env bash
# Sets everything up, then runs a whole experiment on the sample games that come with fsbench: games → samples → training
# of seven feature sets → quantised networks → measures → report. Finished runs are kept, so a second call only reports.
# Results go to results/local/quickstart, which git ignores; results/quickstart holds the example results of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
printf 'quickstart: building (about fifteen minutes on two cores the first time)\n' >&2
cargo build --release
cargo run --quiet --release -- run experiments/quickstart.toml "$@"
