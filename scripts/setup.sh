#!/usr/bin/env bash
# Fetches libtorch, which fsbench-tch needs and cargo cannot fetch: 700 MB, into a cache outside the checkout. Writes
# .cargo/config.toml so that plain `cargo run --release --features tch` finds it. A second call changes nothing.
#
#   FSBENCH_CACHE           the cache (default: $XDG_CACHE_HOME/fsbench, else ~/.cache/fsbench)
#   FSBENCH_WITHOUT_TCH=1   fetch no libtorch: only fsbench will be built
#   LIBTORCH                an unpacked libtorch 2.11 to use instead of fetching one
#   LIBTORCH_USE_PYTORCH=1  use the libtorch of the PyTorch 2.11 that `python3` imports, instead of fetching one
#
# Run it, or source it from another script to get LIBTORCH and CARGO_TARGET_DIR, which it exports, and `features`, the
# options of cargo with which all scripts build both programs, so that the library is compiled once.
set -euo pipefail

TORCH_VERSION=2.11.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Not as options: pip 21, which macOS brings, refuses the first one.
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}

log() { printf 'setup: %s\n' "$*" >&2; }

fail() { # MESSAGE REMEDY
  printf 'setup: %s\n       %s\n' "$1" "$2" >&2
  exit 1
}

need_tools() {
  command -v cargo >/dev/null || fail "cargo is missing." "Install Rust 1.95 or later: https://rustup.rs"
  command -v cc >/dev/null || fail "a C compiler is missing." "Install one, for example: apt-get install gcc, or on macOS: xcode-select --install"
  local have want
  have=$(rustc --version | awk '{print $2}')
  want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
  # `sort -V` is not everywhere.
  awk -v have="${have%%-*}" -v want="$want" 'BEGIN {
    split(have, h, "."); split(want, w, ".")
    for (i = 1; i <= 3; i++) if (h[i] + 0 != w[i] + 0) exit h[i] + 0 < w[i] + 0
  }' ||
    fail "rustc is $have; fsbench needs $want." "Run: rustup update stable"
}

need_tools_of_libtorch() {
  local without="or leave libtorch out with FSBENCH_WITHOUT_TCH=1."
  command -v c++ >/dev/null || fail "a C++ compiler is missing; fsbench-tch needs one." "Install one, for example apt-get install g++, $without"
  command -v python3 >/dev/null || fail "python3 is missing; this script fetches libtorch with it." "Install it, set LIBTORCH to an unpacked libtorch $TORCH_VERSION, $without"
}

fetch_libtorch() { # TARGET_FOLDER
  local target=$1 partial
  python3 -m pip --version >/dev/null 2>&1 ||
    fail "python3 has no pip; this script fetches libtorch with it." "Install it (apt-get install python3-pip, or python3 -m ensurepip), or set LIBTORCH."
  mkdir -p "$cache"
  local free
  free=$(df -Pk "$cache" | awk 'NR == 2 {print $4}')
  [ "$free" -gt 4000000 ] || fail "$cache has $((free / 1024)) MB free; unpacking libtorch takes 4,000 MB." "Free some space, or set FSBENCH_CACHE to another folder."
  partial=$(mktemp -d "$cache/libtorch-partial.XXXXXX")
  # Meanwhile cargo compiles what takes long and needs no libtorch. If that fails, so does the build that follows.
  (cd "$root" && exec cargo build --release -p polars-io -p cranelift-jit) &
  local compiling=$!
  trap 'kill "$compiling" 2>/dev/null || true; rm -rf "$partial"' EXIT
  local packages=("torch==$TORCH_VERSION")
  # On Linux x86-64 the libraries link two small CUDA libraries even without a GPU.
  if [ "$(uname -sm)" = "Linux x86_64" ]; then
    packages+=('nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*')
  fi
  log "fetching libtorch $TORCH_VERSION into $target (downloads 530 MB, keeps 700 MB)"
  # Any Python version's wheel will do, because only its C++ libraries are used.
  python3 -m pip install --quiet --no-deps --no-compile \
    --only-binary=:all: --python-version 3.12 --implementation cp --target "$partial" "${packages[@]}" ||
    fail "libtorch could not be fetched." "See pip's message above; behind a proxy set HTTPS_PROXY, offline set LIBTORCH."
  rm -f "$partial"/torch/lib/libtorch_cuda* "$partial"/torch/lib/libtorch_nvshmem* "$partial"/torch/lib/libtorch_python*
  [ -e "$partial/torch/lib/libtorch_cpu.so" ] || [ -e "$partial/torch/lib/libtorch_cpu.dylib" ] ||
    fail "the fetched package holds no libtorch." "Set LIBTORCH to an unpacked libtorch $TORCH_VERSION."
  chmod 755 "$partial"
  rm -rf "$target"
  mv "$partial" "$target"
  wait "$compiling" || true
  trap - EXIT
}

write_cargo_config() { # CONTENTS
  local file=$root/.cargo/config.toml mark='# Written by scripts/setup.sh'
  if [ -e "$file" ] && ! grep -q "^$mark" "$file"; then
    log "$file was not written by this script and is left unchanged; plain cargo commands need in it:"
    printf '%s\n' "$1" >&2
    return
  fi
  local wanted
  wanted=$(printf '%s; environment variables override it.\n%s' "$mark" "$1")
  if [ "$(cat "$file" 2>/dev/null)" != "$wanted" ]; then
    mkdir -p "$root/.cargo"
    printf '%s\n' "$wanted" >"$file"
    log "wrote .cargo/config.toml: builds go to $CARGO_TARGET_DIR"
  fi
}

need_tools
# PyTorch, from whose package libtorch is taken, has none for Intel Macs any more.
if [ "$(uname -sm)" = "Darwin x86_64" ] && [ -z "${LIBTORCH:-}${LIBTORCH_USE_PYTORCH:-}" ]; then
  export FSBENCH_WITHOUT_TCH=1
fi
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
config=$(printf '[build]\ntarget-dir = "%s"' "$CARGO_TARGET_DIR")
features=(--features tch)
[ -n "${FSBENCH_WITHOUT_TCH:-}" ] || need_tools_of_libtorch
if [ -n "${FSBENCH_WITHOUT_TCH:-}" ]; then
  log "fsbench alone, without libtorch and fsbench-tch (FSBENCH_WITHOUT_TCH, or an Intel Mac)"
  features=()
elif [ -n "${LIBTORCH_USE_PYTORCH:-}" ]; then
  log "using the libtorch of python3's PyTorch (LIBTORCH_USE_PYTORCH is set)"
elif [ -n "${LIBTORCH:-}" ] && [ "$LIBTORCH" != "$cache/libtorch-$TORCH_VERSION/torch" ]; then
  [ -d "$LIBTORCH/lib" ] || fail "LIBTORCH is $LIBTORCH, which has no folder lib." "Point it at an unpacked libtorch $TORCH_VERSION, or unset it."
  log "using $LIBTORCH (LIBTORCH is set)"
else
  target=$cache/libtorch-$TORCH_VERSION
  [ -d "$target/torch/lib" ] || fetch_libtorch "$target"
  export LIBTORCH=$target/torch
  config=$(printf '%s\n\n[env]\nLIBTORCH = "%s"' "$config" "$LIBTORCH")
fi
write_cargo_config "$config"
