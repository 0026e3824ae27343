#!/usr/bin/env python3
"""Training on a GPU: is it right, and how fast is it? Started by scripts/gpu_check.sh.

Three things are measured, and what fails is written down with its reason while the rest goes on:
  agreement  losses and the first gradient on the GPU against those of the CPU's kernels, same seed
  resume     a run killed with SIGKILL goes on with --resume and ends as an undisturbed one does
  rates      positions per second by network and batch size, loader included; a few on the CPU
Ends with 1 if a check failed or a row is missing.
"""

import argparse
import array
import contextlib
import importlib.metadata
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHES = [4096, 16384, 65536]
# Of a step, one after the other; copying runs beside them.
PARTS = ["waiting", "forward", "dense", "backward", "update", "copying"]

# A feature set that bullet's examples use: ten buckets of the own king, on a board mirrored so that it stands on a–d.
TEN_BUCKETS = """
name = "TEN-BUCKETS"
features = "bucket(K, layout) * color(P) * role(P) * square(P) for P in pieces"
mirror = "king-left"
factor = "color(P) * role(P) * square(P)"

[buckets]
layout = [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9]
"""

# Networks by name: arguments of `fsbench train`; TEN_BUCKETS stands for the file of this definition.
NETWORKS = {
    "piece 256→1": ["piece", "--l1", "256", "--hidden", "none", "--scheme", "simple", "--activation", "screlu"],
    "piece 256→32→1": ["piece", "--l1", "256", "--hidden", "32", "--activation", "screlu"],
    "half-ka-v2-hm 256→32→1": ["half-ka-v2-hm", "--l1", "256", "--hidden", "32"],
    "ten king buckets 1024→16→32→1": [TEN_BUCKETS, "--l1", "1024", "--activation", "pairwise", "--hidden", "16,32",
                                      "--hidden-activation", "screlu", "--buckets", "8"],
    "stockfish-15.1": ["--arch", "stockfish-15.1"],
    "stockfish-19": ["--arch", "stockfish-19"],
}
LARGE = {"stockfish-15.1", "stockfish-19"}
ON_CPU = ["piece 256→32→1", "half-ka-v2-hm 256→32→1"]

# Networks whose training on the two devices is compared: arguments of `fsbench train`.
COMPARED = {
    "piece 256→32→1, eval": [*NETWORKS["piece 256→32→1"], "--method", "eval"],
    "half-ka-v2-hm 256→32→1 with its factor, eval": [*NETWORKS["half-ka-v2-hm 256→32→1"], "--method", "eval"],
    "piece 256→32→1, pqr": [*NETWORKS["piece 256→32→1"], "--method", "pqr"],
}
# Largest relative difference from the CPU: of the first step's loss, of the worst array of its gradient, of the mean
# losses of two epochs of a few steps, of the validation loss after them. Rounding grows a hundredfold in every twenty
# steps from there on: after a hundred, the validation losses of networks that are equally good differ by percents.
LIMITS = {"first_loss": 1e-5, "gradient": 1e-3, "loss": 1e-3, "validation": 1e-2}


class Failed(Exception):
    """A measurement that gave no number, with the reason."""


class Memory:
    """The GPU's memory while something runs: the most in use, in MiB, less what was in use before."""

    QUERY = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]

    def __enter__(self):
        self.first, self.most, self.done = None, None, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def watch(self):
        while not self.done.wait(0.1):
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                used = int(subprocess.run(self.QUERY, capture_output=True, text=True, timeout=5).stdout)
                self.first = used if self.first is None else self.first
                self.most = max(used, self.most or 0)

    def mib(self):
        return None if self.most is None else self.most - self.first


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.runs = options, folder, 0
        self.end = time.monotonic() + options.seconds
        self.environment = dict(os.environ, FSBENCH_CACHE=str(folder / "cache"), FSBENCH_STEP_TIMES="1")
        if options.device == "emulated":
            self.environment["FSBENCH_EMULATED_GPU"] = "1"
        # What `fsbench train` takes as --device.
        self.device = "cuda"
        self.ten_buckets = folder / "ten-buckets.toml"
        self.ten_buckets.write_text(TEN_BUCKETS)

    def out(self):
        """A new folder for a run."""
        self.runs += 1
        return self.folder / f"run{self.runs}"

    def start(self, arguments, error):
        arguments = [str(self.ten_buckets if argument == TEN_BUCKETS else argument) for argument in arguments]
        command = [self.options.program, "train", *arguments, "--data", self.options.data, "--format", "json"]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=error, text=True,
                                start_new_session=True)

    def train(self, arguments):
        """Runs `fsbench train`; returns its outcome and what it said on stderr."""
        limit = min(self.options.seconds / 5, self.end - time.monotonic())
        if limit < 5:
            raise Failed("no time left")
        with open(self.folder / "stderr", "w+") as error:
            process = self.start(arguments, error)
            try:
                out, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise Failed(f"not done after {limit:.0f} s") from None
            error.seek(0)
            said = error.read()
        if process.returncode != 0:
            lines = said.strip().splitlines()
            raise Failed(f"exit status {process.returncode}: {lines[-1] if lines else 'no message'}")
        return json.loads(out), said


def kill(process):
    """Kills fsbench and the processes that it started: fsbench-tch would save its state."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in [process.pid, *map(int, children)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def settings(samples, batch, epochs, device):
    """Options of a run whose epochs are short, and whose validation is small and out of the way."""
    return ["--epoch-samples", samples, "--batch-size", batch, "--epochs", epochs, "--device", device, "--validation",
            0.02, "--decay", 1, "--seed", 1]


def tensors(path, prefix):
    """The arrays of a safetensors file whose names begin with `prefix`, by name."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if name.startswith(prefix):
            begin, end = entry["data_offsets"]
            found[name] = array.array("f", data[start + begin : start + end])
    return found


def relative(value, reference):
    return abs(value - reference) / abs(reference)


def agreement(bench, arguments):
    """Differences of the device from the CPU: after one step, Adam's first moments are a tenth of the gradient."""
    batch, steps = bench.options.batch, bench.options.steps
    first, gradients, losses, validation = [], [], [], []
    for device in ["cpu", bench.device]:
        out = bench.out()
        outcome, _ = bench.train([*arguments, "--out", out, *settings(batch, batch, 1, device)])
        first.append(outcome["epochs"][0]["train_loss"])
        gradients.append(tensors(out / "checkpoint.safetensors", "adam.m."))
        outcome, _ = bench.train([*arguments, "--out", bench.out(), *settings(steps * batch, batch, 2, device)])
        losses.append([epoch["train_loss"] for epoch in outcome["epochs"]])
        validation.append(outcome["epochs"][-1]["validation_loss"])
    gradient = 0.0
    for name, expected in gradients[0].items():
        length = math.hypot(*expected)
        if length > 0:
            gradient = max(gradient, math.dist(gradients[1][name], expected) / length)
    differences = [relative(found, expected) for expected, found in zip(*losses, strict=True)]
    row = {"first_loss": relative(first[1], first[0]), "gradient": gradient, "loss": max(differences),
           "validation": relative(validation[1], validation[0])}
    return {**row, "batch": batch, "steps_per_epoch": steps, "losses_cpu": losses[0], "losses": losses[1]}


def resume(bench):
    batch = min(bench.options.batch, 4096)
    samples = bench.options.steps * 30 * batch
    network = "piece 256→32→1" if bench.options.trial else "half-ka-v2-hm 256→32→1"
    run = [*NETWORKS[network], *settings(samples, batch, 2, bench.device), "--checkpoint-every", 0.005]
    undisturbed, _ = bench.train([*run, "--out", bench.out()])
    out = bench.out()
    process = bench.start([*run, "--out", out], subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not (out / "checkpoint.safetensors").exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.05)
    if process.poll() is not None:
        raise Failed("the run ended before it was killed")
    kill(process)
    process.communicate()
    outcome, said = bench.train([*run, "--out", out, "--resume"])
    step = re.search(r"after step (\d+)", said)
    losses = [run["epochs"][-1]["validation_loss"] for run in (undisturbed, outcome)]
    steps = outcome["epochs"][-1]["step"]
    resumed = int(step.group(1)) if step else 0
    difference = relative(losses[1], losses[0])
    return {"resumed_after_step": resumed, "steps": steps, "validation_undisturbed": losses[0],
            "validation_resumed": losses[1], "difference": difference,
            "passed": 0 < resumed < steps == undisturbed["epochs"][-1]["step"] and difference < 0.05}


def rate(bench, network, batch, device):
    """Positions per second over the epochs after the first."""
    # The large networks take a hundred times as long to save.
    steps, epochs = (bench.options.steps * 3, 2) if network in LARGE else (bench.options.steps * 10, 4)
    out = bench.out()
    with Memory() as memory:
        outcome, said = bench.train([*NETWORKS[network], "--out", out, *settings(steps * batch, batch, epochs, device)])
    shutil.rmtree(out)
    rates = [epoch["samples_per_second"] for epoch in outcome["epochs"][1:]]
    return {"positions_per_second": statistics.harmonic_mean(rates), "epochs": rates,
            "steps_per_epoch": math.ceil(outcome["training_samples"] / batch), "parameters": outcome["parameters"],
            "gpu_memory_mib": memory.mib() if device != "cpu" else None, "step_times_us": step_times(said)}


def step_times(said):
    """Times of a step's parts in µs, over the epochs after the first."""
    found = [json.loads(line.partition(": step times in µs: ")[2]) for line in said.splitlines() if "step times" in line]
    later = found[1:]
    steps = sum(epoch["timed_steps"] for epoch in later)
    if not steps:
        return None
    return {part: sum(epoch[part] * epoch["timed_steps"] for epoch in later) / steps for part in PARTS}


def first_line(command):
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        lines = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.splitlines()
        return lines[0].strip() if lines else None
    return None


def machine(options):
    names = re.findall(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    gpu = first_line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader", "--id=0"])
    card, driver, memory = gpu.split(", ") if gpu and gpu.count(", ") == 2 else (None, None, None)
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = None
    return {"card": card, "driver": driver, "gpu_memory": memory, "cpu": names[0] if names else None,
            "cores": len(os.sched_getaffinity(0)), "torch": torch, "device": options.device,
            "fsbench": first_line([options.program, "--version"]), "data": pathlib.Path(options.data).name,
            "date": time.strftime("%Y-%m-%d", time.gmtime())}


def measure(bench, path):
    """Does everything in order of importance, and saves after each."""
    result = {"machine": machine(bench.options), "agreement": [], "resume": [], "rates": []}
    print(json.dumps(result["machine"], ensure_ascii=False), flush=True)

    def add(kind, key, work):
        began = time.monotonic()
        try:
            row = work()
        except Exception as error:  # whatever it is, the rest is measured
            row = {"failed": str(error) if isinstance(error, Failed) else repr(error)}
        result[kind].append({**key, **row})
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
        brief = {name: value for name, value in row.items() if not isinstance(value, list)}
        print(f"{kind} {key} {brief} ({time.monotonic() - began:.1f} s)", flush=True)

    for name, arguments in COMPARED.items():
        if bench.options.trial and "half-ka" in name:
            continue
        add("agreement", {"network": name}, lambda arguments=arguments: agreement(bench, arguments))
    add("resume", {}, lambda: resume(bench))
    device = bench.device
    rows = [(network, 16384, device) for network in NETWORKS] + [(network, 16384, "cpu") for network in ON_CPU]
    rows += [(network, batch, device) for network in NETWORKS for batch in [65536, 4096]]
    if bench.options.trial:
        rows = [(network, bench.options.batch, device) for network in list(NETWORKS)[:2]]
    for network, batch, device in rows:
        key = {"network": network, "batch": batch, "device": device}
        add("rates", key, lambda row=(network, batch, device): rate(bench, *row))
    return result


def step_time(rows):
    """Least squares of a step's time over the batch size: "fixed ms + µs per position"."""
    points = [(row["batch"], row["batch"] / row["positions_per_second"]) for row in rows]
    if len(points) < 3:
        return ""
    slope, fixed = statistics.linear_regression([batch for batch, _ in points], [seconds for _, seconds in points])
    return f"{1e3 * fixed:.1f} ms + {1e6 * slope:.2f} µs"


def tables(results):
    """The tables of all cards, as Markdown."""
    lines = ["# Training on GPUs", "",
             "Written by `scripts/gpu_check.sh`; the numbers are in the JSON files beside this page."]
    for result in results:
        about = result["machine"]
        card = "An emulated GPU" if about["device"] == "emulated" else about["card"] or "no GPU"
        lines += ["", f"## {card}", "",
                  f"Driver {about['driver']}, {about['gpu_memory']}, torch {about['torch']}; {about['cores']} cores of "
                  f"{about['cpu']}; {about['fsbench']}; {about['data']}; {about['date']}.", "",
                  "Million positions per second, with `fsbench train`'s own loader; a step's time is fitted to the "
                  "batch sizes; memory by batch size.", "",
                  "| network | parameters | batch 4,096 | 16,384 | 65,536 | a step: fixed + per position "
                  "| GPU memory, MiB | CPU, 16,384 |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
        for network in NETWORKS:
            rows = {(row["device"], row["batch"]): row for row in result["rates"] if row["network"] == network}
            done = [row for (device, _), row in rows.items() if device != "cpu" and "failed" not in row]
            parameters = f"{done[0]['parameters']:,}" if done else ""
            memory = ", ".join(f"{row['gpu_memory_mib']:,}" for row in sorted(done, key=lambda row: row["batch"])
                               if row["gpu_memory_mib"] is not None)
            on_device = [rate_cell(rows.get(("cuda", batch))) for batch in BATCHES]
            on_cpu = rate_cell(rows.get(("cpu", 16384)))
            lines.append("| " + " | ".join([network, parameters, *on_device, step_time(done), memory, on_cpu]) + " |")
        lines += ["", "Where a step's time goes at batch 16,384, in milliseconds on the device: waiting for a batch or its "
                  "copy, rows to activations, dense layers with the loss and their gradients, the table's gradient, the "
                  "optimiser. The next batch is copied beside all of it.", "",
                  "| network | " + " | ".join(PARTS) + " |", "|---|" + "---:|" * len(PARTS)]
        for row in result["rates"]:
            times = row.get("step_times_us")
            if times and row["batch"] not in (BATCHES[0], BATCHES[2]):
                cells = [f"{times[part] / 1e3:.3f}" for part in PARTS]
                lines.append("| " + " | ".join([row["network"], *cells]) + " |")
        lines += ["", "Relative differences from the CPU's kernels, same seed and batches: of the loss and the gradient "
                  "of the first step, of the mean losses of two epochs of a few steps, and of the validation loss "
                  "after them.", "",
                  "| network | loss | gradient | largest of the means | validation | |",
                  "|---|---:|---:|---:|---:|---|"]
        for row in result["agreement"]:
            values = [""] * 4 if "failed" in row else [f"{row[key]:.1e}" for key in LIMITS]
            lines.append("| " + " | ".join([row["network"], *values, verdict(row)]) + " |")
        for row in result["resume"]:
            text = row.get("failed") or (
                f"went on after step {row['resumed_after_step']} of {row['steps']}; validation loss "
                f"{row['validation_resumed']:.6f}, undisturbed {row['validation_undisturbed']:.6f}")
            lines += ["", f"Killed with SIGKILL and resumed: {text}: {verdict(row)}."]
        failures = [row for row in result["rates"] if "failed" in row]
        lines += [""] if failures else []
        lines += [f"- {row['network']}, batch {row['batch']:,}, {row['device']}: {row['failed']}" for row in failures]
    return "\n".join(lines) + "\n"


def rate_cell(row):
    if row is None:
        return ""
    return "failed" if "failed" in row else f"{row['positions_per_second'] / 1e6:.2f}"


def has_passed(row):
    if "failed" in row:
        return False
    if "first_loss" in row:
        return all(row[key] <= limit for key, limit in LIMITS.items())
    return row.get("passed", True)


def verdict(row):
    return row.get("failed") or ("passed" if has_passed(row) else "FAILED")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="fsbench, with fsbench-tch beside it")
    parser.add_argument("data", help="positions with scores and moves")
    parser.add_argument("--device", choices=["cuda", "emulated"], default="cuda",
                        help="emulated: the GPU's kernels compiled for the CPU, far slower, to try this script")
    parser.add_argument("--trial", action="store_true", help="the two smallest networks with small batches alone")
    parser.add_argument("--seconds", type=float, default=300, help="after these, no measurement is started or goes on")
    parser.add_argument("--steps", type=int, default=20, help="length of everything: steps of a comparison's epochs")
    parser.add_argument("--batch", type=int, default=16384, help="batch size of a comparison")
    parser.add_argument("--out", default=str(ROOT / "results" / "gpu"), help="folder of the results")
    options = parser.parse_args()
    if options.trial:
        options.steps, options.batch = min(options.steps, 3), min(options.batch, 256)
    options.program = str(pathlib.Path(options.program).resolve())
    options.data = str(pathlib.Path(options.data).resolve())
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    card = "emulated GPU" if options.device == "emulated" else machine(options)["card"] or "no GPU"
    with tempfile.TemporaryDirectory(prefix="gpu_check-") as folder:
        name = re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")
        result = measure(Bench(options, pathlib.Path(folder)), out / f"{name}.json")
    text = tables([json.loads(path.read_text()) for path in sorted(out.glob("*.json"))])
    (out / "README.md").write_text(text)
    print(text)
    rows = result["agreement"] + result["resume"] + result["rates"]
    sys.exit(not all(has_passed(row) for row in rows))


main()
