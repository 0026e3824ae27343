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
    """(positions per second, nanoseconds of processor time per position)"""
    batches = fsbench.Batches(data, features, batch_size=size, threads=threads, epochs=0, needs="score")
    with iter(batches) as iterator:
        next(iterator)
        positions, start, cpu = 0, time.perf_counter(), time.process_time()
        while (elapsed := time.perf_counter() - start) < seconds:
            positions += next(iterator)["positions"]
        cpu = time.process_time() - cpu
    return positions / elapsed, cpu / positions * 1e9


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
    print("| set | threads | Batches, M positions/s | samples-service --bench | ratio | ns/position | of the service |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        rounds = []
        for _ in range(arguments.rounds):
            ours = of_python(arguments.data, name, arguments.threads, arguments.seconds, arguments.batch_size)
            rounds.append((ours, of_service(arguments.program, arguments.data, name, arguments.threads, arguments.batch_size)))
        (rate, ours), (service, theirs) = ([statistics.median(side) for side in zip(*both)] for both in zip(*rounds))
        ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in rounds)
        print(f"| {name} | {arguments.threads} | {rate / 1e6:.2f} | {service / 1e6:.2f} | {ratio:.2f} | "
              f"{ours:.0f} | {theirs:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
