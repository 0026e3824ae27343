#!/usr/bin/env bash
# Compares the back ends for ARM's NEON with the scalar one, bit for bit, on any Linux: the tests of the engine, of the
# trainer's lanes and of the vector encoders, built for aarch64 and run under qemu. Says nothing of their speed.
#
#   scripts/neon.sh            needs, on Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user;
#                              rustup target add aarch64-unknown-linux-gnu
#
# Exit status: 0 = equal, 1 = a test failed, 2 = a tool is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=aarch64-unknown-linux-gnu
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$tool" >/dev/null || { printf 'neon: %s is missing; the first lines of this script say how to install it\n' "$tool" >&2; exit 2; }
done
rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d ||
  { printf 'neon: Rust cannot build for %s. Run: rustup target add %s\n' "$target" "$target" >&2; exit 2; }
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
# Optimised as a release is, so that the code under test is the one that runs.
build=(cargo test --release --target "$target" --no-default-features)
"${build[@]}" --lib -- cpu:: engine:: train:: features::compiled::neon features::compiled::vector_encoder || exit 1
"${build[@]}" --test engine || exit 1
echo 'neon: every back end gives the bits of the scalar one'
