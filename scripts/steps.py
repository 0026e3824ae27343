#!/usr/bin/env python3
"""Experiments of many small steps, done by `fsbench run` and `fsbench work`.

    steps.py kills [N]      kills run and work N times (200) at drawn moments: no step is lost or done twice, and the records
                            are those of an undisturbed run, but for times
    steps.py overhead [N] [VERB]   an experiment of N steps (200) or more by run, work and two workers, or by one of
                            them ("work --jobs 2"): the time per step beside the steps' own work

FSBENCH_PROGRAM names the program (default: fsbench in the target folder).
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = os.environ.get("FSBENCH_PROGRAM", str(TARGET / "release" / "fsbench"))

EXPERIMENT = """
name  = "steps"
data  = "games.fsd"
seeds = [{seeds}]
[train]
l1            = 8
hidden        = [4]
batch_size    = 256
epochs        = 1
epoch_samples = 1024
learning_rate = 0.01
decay         = 0.5
validation    = 0.1
threads       = 1
device        = "cpu"
[[runs]]
method = "pqr"
sets   = ["piece", "compact"]
[measure.updates]
games = 5
[measure.activity]
games = 5
[measure.error]
games = 5
{more}
"""

MATCH = """
[match]
nodes       = 20
pairs       = 4
shard_pairs = 2
hash        = 1
seeds       = [1, 2]
"""


class Folder:
    """A folder with an experiment, its data and a cache of its own."""

    def __init__(self, root, seeds, more=""):
        self.root = Path(root)
        self.root.mkdir(parents=True)
        text = EXPERIMENT.format(seeds=", ".join(str(seed + 1) for seed in range(seeds)), more=more)
        (self.root / "steps.toml").write_text(text)
        games = sorted((ROOT / "experiments" / "quickstart").glob("*.pgn*"))[0]
        self.must("dataset", "build", games, "--method", "pqr", "--samples", "2000", "--out", "games.fsd")

    def start(self, *arguments, **options):
        environment = dict(os.environ, FSBENCH_CACHE=str(self.root / "cache"))
        command = [PROGRAM, *map(str, arguments)]
        return subprocess.Popen(command, cwd=self.root, env=environment, **options)

    def must(self, *arguments):
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, error = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{arguments} failed: {error}")
        return out

    def verb(self, verb, *more):
        return self.must(verb, "steps.toml", "--out", "results", *more)

    def steps(self):
        return json.loads(self.verb("run", "--list-steps"))

    def stored(self):
        """The files of finished results, with what tells a file from one that replaced it."""
        folder = self.root / "cache" / "runs" / "finished"
        found = {}
        for path in folder.glob("*.json") if folder.is_dir() else []:
            data = path.stat()
            found[path.name] = (data.st_ino, data.st_mtime_ns)
        return found

    def records(self):
        """The results without times."""
        timed = {"seconds", "samples_per_second", "recorded", "machine", "nps"}

        def strip(value):
            if isinstance(value, dict):
                return {key: strip(inner) for key, inner in value.items() if key not in timed}
            return [strip(inner) for inner in value] if isinstance(value, list) else value

        names = ["runs", "updates", "validation", "activity", "error", "match"]
        return {name: strip(json.loads((self.root / "results" / f"{name}.json").read_text())) for name in names}


def kills(root, count):
    alone = Folder(root / "alone", 4, MATCH)
    began = time.monotonic()
    alone.verb("run")
    duration = time.monotonic() - began
    expected = alone.records()
    rng = random.Random(1)
    killed, rounds = 0, 0
    # The longest life of a process: such that some steps are done, whatever else the machine does.
    window = duration / 8
    while killed < count:
        rounds += 1
        folder = Folder(root / f"round{rounds}", 4, MATCH)
        seen = {}
        # Ends when everything is done, or enough are killed.
        while killed < count and not all(step["done"] for step in folder.steps()):
            verbs = rng.choice([["run"], ["work", "work"], ["work", "work", "work"]])
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            running = [folder.start(verb, "steps.toml", "--out", "results", **quiet) for verb in verbs]
            for process in running:
                time.sleep(rng.uniform(0, window))
                if process.poll() is None:
                    process.kill()
                    killed += 1
            for process in running:
                process.wait()
            stored = folder.stored()
            for name, file in seen.items():
                assert stored.get(name) == file, f"round {rounds}: {name} was done twice, or lost"
            window *= 0.7 if len(stored) > len(seen) + 4 else 1.3 if len(stored) == len(seen) else 1
            seen = stored
        folder.verb(rng.choice(["run", "work"]))
        assert all(step["done"] for step in folder.steps())
        stored = folder.stored()
        assert all(stored.get(name) == file for name, file in seen.items()), f"round {rounds}: a step was done twice"
        assert folder.records() == expected, f"round {rounds}: the records differ"
        print(f"round {rounds}: {killed} kills, {len(stored)} results, the same records", flush=True)


def overhead(root, count):
    # A training and three measures for each of two sets and every seed, and an update a set.
    seeds = -(-(count - 2) // 8)
    for name in sys.argv[3:] or ["run", "work", "work --jobs 2"]:
        arguments = name.split()
        folder = Folder(root / name.replace(" ", ""), seeds)
        began = time.monotonic()
        folder.verb(*arguments)
        wall = time.monotonic() - began
        results = (folder.root / "cache" / "runs" / "finished").glob("*.json")
        own = sum(json.loads(path.read_text())["content"]["seconds"] for path in results if not path.name.startswith("data"))
        steps = len(folder.steps())
        processes = 2 if "2" in name else 1
        print(f"{name}: {steps} steps, {wall:.1f} s, of which {own:.1f} s are the steps' own work: "
              f"{(wall - own / processes) / steps:.3f} s per step beside it", flush=True)
    began = time.monotonic()
    step = folder.steps()[0]
    listed = time.monotonic() - began
    began = time.monotonic()
    folder.verb("run", "--step", step["key"])
    print(f"--list-steps: {listed:.2f} s; --step of a finished step: {time.monotonic() - began:.2f} s")


def main():
    verbs = {"kills": kills, "overhead": overhead}
    if len(sys.argv) < 2 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as root:
        verbs[sys.argv[1]](Path(root), count)


main()
