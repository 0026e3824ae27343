#!/usr/bin/env python3
"""Prints how fast `fsbench.Batches` gives positions, beside `fsbench samples-service --bench` with the same options.

    rates.py [--threads 2] [--seconds 5] [--rounds 3] [--data FILE] [--program PATH] [SET ...]

Both run by turns, and the medians count. The processor time per position tells more than the rate on a machine that has
other work; it is of all threads of the process, without the start. Needs Linux and the program fsbench: the package's, or
`--program`.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import fsbench


def of_python(data, features, threads, seconds, size):
    """(positions per second, nanoseconds of processor time per position, microseconds of the loop's own thread per batch)"""
    batches = fsbench.Batches(data, features, batch_size=size, threads=threads, epochs=0, needs="score")
    with iter(batches) as iterator:
        next(iterator)
        positions, count = 0, 0
        start, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
        for batch in iterator:
            positions, count = positions + batch["positions"], count + 1
            if time.perf_counter() - start > seconds:
                break
        elapsed, cpu, own = time.perf_counter() - start, time.process_time() - cpu, time.thread_time() - own
    return positions / elapsed, cpu / positions * 1e9, own / count * 1e6


def of_service(program, data, features, threads, size):
    command = [program, "samples-service", features, "--bench", "--format", "json"]
    command += ["--batch-size", str(size), "--threads", str(threads), "--needs", "score"]
    command += ["--data", data] if data else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = report["positions_per_second"]
    return rate, cpu / (rate * report["seconds"]) * 1e9


def main():
    parser = argparse.ArgumentParser(description="Rates of batches in Python and of the service, by turns.")
    parser.add_argument("sets", nargs="*", default=["piece", "half-ka-v2-hm"])
    parser.add_argument("--data", help="games or samples [default: the sample games]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default=os.environ.get("FSBENCH_PROGRAM", "fsbench"))
    arguments = parser.parse_args()
    columns = ["set", "threads", "batch size", "M positions/s", "of the service", "ratio", "ns/position", "of the service"]
    print("| " + " | ".join([*columns, "µs/batch of the loop"]) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in arguments.sets:
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(of_python(arguments.data, name, arguments.threads, arguments.seconds, arguments.batch_size))
            theirs.append(of_service(arguments.program, arguments.data, name, arguments.threads, arguments.batch_size))
        (rate, cpu, own), (service, service_cpu) = ([statistics.median(part) for part in zip(*side)] for side in (ours, theirs))
        ratio = statistics.median(our[0] / their[0] for our, their in zip(ours, theirs))
        row = [name, arguments.threads, arguments.batch_size, f"{rate / 1e6:.1f}", f"{service / 1e6:.1f}", f"{ratio:.2f}"]
        print("| " + " | ".join(map(str, [*row, f"{cpu:.0f}", f"{service_cpu:.0f}", f"{own:.0f}"])) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
