#!/usr/bin/env bash
# Prints how often the intervals of Elo, ratings and tables of sets hold the truth, over the whole grids of which
# `cargo test` takes a part. About an hour on one core.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release --lib -- --ignored --nocapture --test-threads 1 covered_everywhere hold_together_everywhere "$@"
