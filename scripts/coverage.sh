#!/usr/bin/env bash
# Prints how often the intervals of Elo, ratings, tables of sets and curves over the amount of data hold the truth, over
# the whole grids of which `cargo test` takes a part. About two hours on one core.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release --lib -- --ignored --nocapture --test-threads 1 covered_everywhere hold_together_everywhere "$@"
