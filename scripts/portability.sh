#!/usr/bin/env bash
# Builds fsbench for other systems and runs there what can be run here: aarch64 Linux under qemu-user, Windows under
# wine; for macOS it only compiles. What the other program writes is compared, byte for byte, with what this machine's
# program writes from the same files.
#
#   scripts/portability.sh [TARGET…]            build and run; by default for all four systems:
#                                               aarch64-unknown-linux-gnu x86_64-pc-windows-gnu
#                                               aarch64-apple-darwin x86_64-apple-darwin
#   scripts/portability.sh --check [TARGET…]    only `cargo check` of the targets that are installed, for at most two
#                                               minutes together; a second call goes on where the first one stopped
#   FSBENCH_PORTABILITY_SETS=piece,compact      compare these feature sets only [default: all shipped ones]
#   FSBENCH_PORTABILITY_PROFILE=dev             cargo's profile [default: release]
#   CARGO_TARGET_DIR, FSBENCH_CACHE             as for setup.sh
#
# Needs, for Debian: rustup target add TARGET; apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# gcc-mingw-w64-x86-64 wine64; for macOS: pip install ziglang cargo-zigbuild. As root the script installs what is missing;
# else it says so and leaves that system out. From nothing it takes 50 minutes of processor time, seven of them for the
# programs that it runs. Exit status: 0 = nothing failed (what was skipped is listed), 1 = something failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8

all=(aarch64-unknown-linux-gnu x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-apple-darwin)
mode=run
if [ "${1:-}" = --check ]; then
  mode=check
  shift
fi
[ $# -eq 0 ] || all=("$@")
cache=${FSBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fsbench}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
profile=${FSBENCH_PORTABILITY_PROFILE:-release}
folder=$profile
[ "$profile" != dev ] || folder=debug
skipped=() failed=() passed=()
skip() { skipped+=("$1"); }

log() { printf 'portability: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# Whether a C compiler is there, with its headers.
compiles() { printf '#include <stdlib.h>\n' | "$1" -xc -fsyntax-only - 2>/dev/null; }

# Installs Debian packages if a test fails, where that is allowed.
need() { # have|compiles PROGRAM PACKAGE…
  local test=("$1" "$2")
  shift 2
  "${test[@]}" && return
  [ "$mode" = run ] && [ "$(id -u)" = 0 ] && have apt-get || return
  log "installing $*"
  local install=(apt-get install -y -qq --no-install-recommends "$@")
  export DEBIAN_FRONTEND=noninteractive
  "${install[@]}" >/dev/null 2>&1 || { apt-get update -qq && "${install[@]}"; } >/dev/null 2>&1
  "${test[@]}"
}

# The C compiler of macOS, by zig, which brings the headers.
need_zig() {
  local tools=$cache/zig
  export PYTHONPATH=$tools${PYTHONPATH:+:$PYTHONPATH} PATH=$tools/bin:$PATH
  have cargo-zigbuild && python3 -c 'import ziglang' 2>/dev/null && return
  [ "$mode" = run ] && have python3 || return
  log "fetching ziglang and cargo-zigbuild into $tools"
  PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --target "$tools" ziglang cargo-zigbuild
}

# Windows has a library for random numbers that older versions of wine lack; it stands beside the program for wine alone.
random_numbers() { # FOLDER
  printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
    '__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, length); }' |
    x86_64-w64-mingw32-gcc -shared -o "$1/bcryptprimitives.dll" -xc - -ladvapi32
}

# Whether a target can be compiled here; says what it lacks.
prepare() { # TARGET
  if ! rustup target list --installed 2>/dev/null | grep -qx "$1"; then
    [ "$mode" = run ] && have rustup && rustup target add "$1" >/dev/null 2>&1 || { skip "$1: rustup target add $1"; return 1; }
  fi
  case $1 in
    aarch64-unknown-linux-gnu)
      need compiles aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross ||
        { skip "$1: no C compiler (gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"; return 1; }
      export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc ;;
    x86_64-pc-windows-gnu)
      need compiles x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 || { skip "$1: no C compiler (gcc-mingw-w64-x86-64)"; return 1; } ;;
    *-apple-darwin)
      need_zig || { skip "$1: no C compiler (pip install ziglang cargo-zigbuild)"; return 1; } ;;
    *) skip "$1: this script does not know it"; return 1 ;;
  esac
}

# cargo's command for a target: zig compiles what is C for macOS.
cargo_of() { # TARGET check|build
  case $1 in
    *-apple-darwin) printf 'cargo-zigbuild\n%s\n' "$2" ;;
    *) printf 'cargo\n%s\n' "$2" ;;
  esac
}

# Compiles for a target, without warnings. This machine's own program keeps its flags, so that a build of it is used again.
compile() { # TARGET check|build [timeout SECONDS]
  local target=$1 action=$2 command
  shift 2
  mapfile -t command < <(cargo_of "$target" "$action")
  RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }-D warnings" "$@" "${command[@]}" --quiet --profile "$profile" --target "$target" \
    --lib --bin fsbench
}

if [ "$mode" = check ]; then
  end=$((SECONDS + 120))
  for target in "${all[@]}"; do
    prepare "$target" || continue
    left=$((end - SECONDS))
    [ $left -gt 0 ] || { skip "$target: two minutes are over"; continue; }
    timeout "$left" cargo fetch --quiet --locked --target "$target" 2>/dev/null ||
      { skip "$target: cargo cannot fetch its packages"; continue; }
    status=0
    compile "$target" check timeout "$left" || status=$?
    case $status in
      0) passed+=("$target compiles") ;;
      124) skip "$target: not compiled within two minutes; the next check goes on there" ;;
      *) failed+=("$target does not compile") ;;
    esac
  done
else
  . scripts/portability/exercise.sh
  for target in "${all[@]}"; do
    prepare "$target" || continue
    # Without macOS's frameworks nothing links there.
    action=build
    [ "${target%-apple-darwin}" = "$target" ] || action=check
    log "$target: $action"
    if ! compile "$target" "$action"; then
      failed+=("$target does not compile")
      continue
    fi
    passed+=("$target compiles without warnings")
    program=$CARGO_TARGET_DIR/$target/$folder/fsbench
    case $target in
      aarch64-unknown-linux-gnu)
        need have qemu-aarch64 qemu-user || { skip "$target: not run (qemu-user)"; continue; }
        aarch64-linux-gnu-gcc -shared -fPIC -O1 -o "${program%/*}/spawn.so" scripts/portability/spawn.c
        compare "$target" qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_PRELOAD="${program%/*}/spawn.so" "$program" ;;
      x86_64-pc-windows-gnu)
        # Debian's package keeps it out of PATH.
        PATH=$PATH:/usr/lib/wine
        need have wine64 wine64 || { skip "$target: not run (wine64)"; continue; }
        random_numbers "$CARGO_TARGET_DIR/$target/$folder"
        compare "$target" wine64 "$program.exe" ;;
      *) skip "$target: compiled, not linked and not run; that takes a Mac" ;;
    esac
  done
fi
[ ${#passed[@]} -eq 0 ] || printf 'passed: %s\n' "${passed[@]}"
[ ${#skipped[@]} -eq 0 ] || printf 'skipped: %s\n' "${skipped[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
[ ${#failed[@]} -eq 0 ]
