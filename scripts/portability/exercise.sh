# What scripts/portability.sh runs on both programs. To be sourced there.

# The folder's name has what paths are broken by.
work=$cache/portability/'größe & raum'
# Of another commit's program.
rm -f "$work/here/sums"

# Runs one command of a program, in its folder, and keeps what it prints.
step() { # NAME ARGUMENTS
  local name=$1
  shift
  "${program[@]}" "$@" >"$name.out" 2>"$name.err" </dev/null || { printf '%s\n' "$name" >>failed; return 0; }
}

# All that is compared, in the current folder. `program` is the command that starts fsbench.
exercise() {
  export FSBENCH_CACHE=cache
  local set format
  for set in $sets; do
    step "define-$set" define "$set" --format json --threads 1
    step "encode-$set" encode "$set" --fens positions.fens
    step "delta-$set" delta "$set" --moves moves.txt
  done
  # What is found within a time limit depends on the speed.
  step thorough-piece define piece --thorough --format json
  step build-eval dataset build games.pgn.zst --method eval --min-ply 20 --samples 20000 --out 'gebaute spiele.fsd'
  step build-pqr dataset build games.pgn.zst --method pqr --min-ply 20 --samples 5000 --out pqr.fsd
  for format in binpack viriformat bullet text bullet-text plain; do
    step "convert-$format" dataset convert 'gebaute spiele.fsd' "x.$format" --to "$format"
    step "back-$format" dataset convert "x.$format" --from "$format" "back $format.fsd"
    step "rebuild-$format" dataset build "x.$format" --from "$format" --method eval --out "built $format.fsd"
  done
  # Formats that are only read; a game of viriformat begins with a position of marlinformat.
  head -c 32 x.viriformat >x.marlinformat
  awk -F, '{print $1 " c9 \"1/2-1/2\";"}' x.text >x.epd
  sed 's/[^,]*$/1/' x.text >x.c-chess-cli
  gzip -nc x.text >x.text.gz
  for format in marlinformat epd c-chess-cli text.gz; do
    step "back-$format" dataset convert "x.$format" --from "${format%.gz}" "back $format.fsd"
  done
  # The trainer reads its batches from a samples-service, which is a process of its own.
  for set in piece king-piece; do
    step "train-$set" train "$set" --data 'gebaute spiele.fsd' --l1 32 --hidden 8 --batch-size 64 --epoch-samples 12800 \
      --epochs 1 --seed 7 --threads 2 --out "netz $set"
  done
  step train-binpack train piece --data x.binpack --l1 16 --batch-size 64 --epoch-samples 12800 --epochs 1 --out 'netz binpack'
  step measure-updates measure updates piece --data pqr.fsd --format json
  step measure-error measure error --net 'netz piece/network.safetensors' --checkpoint 'netz piece/best.safetensors' --games 100 --data pqr.fsd --format json
  step measure-loss measure loss 'netz piece' 'netz king-piece' --data 'gebaute spiele.fsd' --format json
  step match match 'netz piece' 'netz king-piece' --nodes 60 --pairs 3 --seed 3 --concurrency 1 --out spiele
  # The engine is found by its whole path, in the system's own form.
  local engine=${program[-1]}
  [ "${engine%.exe}" = "$engine" ] || engine="Z:${engine//\//\\}"
  step match-uci match 'netz piece' "uci:\"$engine\" uci --net \"netz king-piece/network.safetensors\"" --nodes 60 --pairs 2 \
    --seed 3 --concurrency 1 --out 'spiele uci'
  step bench bench --net 'netz piece' --depth 5 --format json
  printf 'position startpos moves e2e4\neval\ngo nodes 300\nquit\n' |
    "${program[@]}" uci --net 'netz piece/network.safetensors' >uci.out 2>uci.err || echo uci >>failed
  step run run versuch.toml --without 'piece by tch' --out 'ergebnis für alle'
  # Times differ: these must only succeed.
  step timed-speed measure speed --all-back-ends --net 'netz piece' --data pqr.fsd --positions 500 --repetitions 2 --seconds 0.01
  step timed-report report 'ergebnis für alle' --out bericht
  interrupt || echo interrupt >>failed
  # A service whose consumer has gone ends by itself.
  local start=$SECONDS
  (sleep 3) | timeout 60 "${program[@]}" samples-service piece --data 'gebaute spiele.fsd' --epochs 0 >/dev/null 2>service.err ||
    echo service-ends >>failed
  [ $((SECONDS - start)) -lt 50 ] || echo service-ends >>failed
}

# Ctrl-C stops a training in good order. What a shell starts in the background would ignore it.
interrupt() {
  local status=0 process seconds=0
  env --default-signal=INT "${program[@]}" train piece --data 'gebaute spiele.fsd' --l1 16 --batch-size 64 --epoch-samples 640 \
    --epochs 100000 --out 'netz lang' >/dev/null 2>interrupt.err </dev/null &
  process=$!
  until [ -s 'netz lang/metrics.jsonl' ] || [ $((seconds += 1)) -gt 300 ]; do sleep 1; done
  kill -INT "$process"
  wait "$process" || status=$?
  [ "$status" = 130 ] && grep -q 'interrupted at step' interrupt.err
}

# The files whose bytes must be the same, with their sums; what contains times or paths is reduced to what does not.
sums() {
  local file
  for file in *.fsd x.* netz\ {piece,king-piece,binpack}/{network,best}.safetensors encode-*.out delta-*.out thorough-*.out \
    measure-*.out cache/runs/*/{network,best}.safetensors ergebnis*/{updates,activity,error,wrong_sign}.json; do
    printf '%s %s\n' "$(sha256sum <"$file" | cut -c1-32)" "$file"
  done
  for file in define-*.out; do
    printf '%s %s\n' "$(grep -E '"(name|identity|num_features|size|offset|stride|formula)"' "$file" | sha256sum | cut -c1-32)" "$file"
  done
  for file in spiele*/games.pgn; do
    printf '%s %s\n' "$(sed -E 's/ [0-9.]+s\}/}/g; s/fsbench\.exe/fsbench/' "$file" | sha256sum | cut -c1-32)" "$file"
  done
  printf '%s bench.out\n' "$(grep -E 'nodes|signature' bench.out | grep -v second | sha256sum | cut -c1-32)"
  printf '%s uci.out\n' "$(sed -E 's/ (time|nps) [0-9]+//g' uci.out | sha256sum | cut -c1-32)"
  [ -s bericht/report.html ] || echo 'no report.html'
  [ ! -e failed ] || sed 's/^/failed: /' failed
}

# The quickstart's experiment, small: one seed, one epoch, fewer samples and games, no times and no match.
experiment() {
  sed -e 's/^seeds .*/seeds = [1]/; s/^epochs .*/epochs = 1/; s/^min_ply .*/&\nsamples = 10000\n[dataset.pqr]\nsamples = 10000/; s/^games .*/games = 20/' \
    -e 's|quickstart/games|games|; /^results /d; /^# Times/,$d' experiments/quickstart.toml
}

# Positions of the sample games, and the moves played in them.
positions() { # PROGRAM…
  local text=$work/text
  rm -rf "$text"
  mkdir -p "$text"
  "$@" dataset build experiments/quickstart/games.pgn.zst --method eval --samples 300 --out "$text/x.fsd" >/dev/null 2>&1
  "$@" dataset convert "$text/x.fsd" "$text/x.text" --to text >/dev/null 2>&1
  cut -d, -f1 "$text/x.text" >"$work/positions.fens"
  awk -F, '{print $1 "|" $3}' "$text/x.text" >"$work/moves.txt"
}

# A fresh folder with the inputs.
inputs() { # FOLDER
  rm -rf "$1"
  mkdir -p "$1"
  cp experiments/quickstart/games.pgn.zst "$1"
  cp "$work/positions.fens" "$work/moves.txt" "$1"
  experiment >"$1/versuch.toml"
}

# Runs everything on this machine's program, once, and on another one, and compares.
compare() { # TARGET PROGRAM…
  local target=$1
  shift
  local other=("$@") program sets
  if [ ! -e "$work/here/sums" ]; then
    log "building for this machine"
    cargo build --quiet --profile "$profile" --bin fsbench
    program=("$CARGO_TARGET_DIR/$folder/fsbench")
    positions "${program[@]}"
    inputs "$work/here"
    sets=$(set_names "${program[@]}")
    log "running here"
    (cd "$work/here" && exercise && sums >sums)
  fi
  sets=$(set_names "$CARGO_TARGET_DIR/$folder/fsbench")
  log "$target: running (emulated: this takes a while)"
  inputs "$work/$target"
  program=("${other[@]}")
  export WINEDEBUG=-all WINEPREFIX=$work/wine
  (cd "$work/$target" && exercise && sums >sums)
  [ ! -e "$work/here/failed" ] || failed+=("this machine's program: $(tr '\n' ' ' <"$work/here/failed")failed")
  local count differences
  count=$(wc -l <"$work/here/sums")
  if differences=$(diff "$work/here/sums" "$work/$target/sums"); then
    passed+=("$target: $count results are the same as here")
  else
    printf '%s\n' "$differences" >&2
    failed+=("$target: results differ; see $work")
  fi
  python_client "$target"
}

# Reads a service by the Python client, which opens its shared memory from outside.
python_client() { # TARGET
  # Where test.sh keeps it.
  export PYTHONPATH=$cache/python${PYTHONPATH:+:$PYTHONPATH}
  if ! python3 -c 'import numpy' 2>/dev/null &&
    ! PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --target "$cache/python" numpy 2>/dev/null; then
    skip "$1: the Python client (no numpy)"
    return
  fi
  local here other
  here=$(batches "$work/here" "$CARGO_TARGET_DIR/$folder/fsbench")
  other=$(batches "$work/$1" "${program[@]}")
  if [ -n "$here" ] && [ "$here" = "$other" ]; then
    passed+=("$1: the Python client reads the same batches")
  else
    failed+=("$1: the Python client reads other batches")
  fi
}

# The sums of the first batches, by the client. A path of wine's is one of its folder's.
batches() { # FOLDER PROGRAM…
  local client='
import builtins, hashlib, numpy, os, samples_client
drive = os.environ["WINEPREFIX"] + "/drive_c"
samples_client.open = lambda path, mode: builtins.open(path.replace("C:", drive).replace("\\", "/"), mode)
samples_client.summarise = lambda batch: hashlib.sha256(b"".join(numpy.asarray(it).tobytes() for it in batch.values())).hexdigest()
raise SystemExit(samples_client.main())'
  local scripts=$PWD/scripts
  (cd "$1" && PYTHONPATH=$scripts:$PYTHONPATH python3 -c "$client" --batches 4 -- "${@:2}" \
    samples-service piece --data 'gebaute spiele.fsd' --batch-size 512 2>client.err)
}

set_names() { # PROGRAM
  if [ -n "${FSBENCH_PORTABILITY_SETS:-}" ]; then
    printf '%s\n' "${FSBENCH_PORTABILITY_SETS//,/ }"
  else
    "$@" define --list --format json | sed -n 's/^ *"name": "\(.*\)",$/\1/p'
  fi
}
