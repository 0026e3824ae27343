#!/usr/bin/env python3
"""Reads batches of fsbench's samples-service as numpy arrays.

As a module:

    from samples_client import Samples

    with Samples(["fsbench", "samples-service", "piece", "--data", "games.fsd"]) as samples:
        for batch in samples:
            batch["stm_offsets"], batch["stm_indices"], batch["score"]

The arrays are views of shared memory, valid until you request the next batch. Copy what you need longer.

As a command, it prints a summary of the first batches:

    samples_client.py --batches 3 -- fsbench samples-service piece --method pqr

Needs numpy. The protocol is described in src/service/PROTOCOL.md.
"""

import argparse
import collections
import contextlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading

import numpy

END = 255
FAILED = 254
VERSION = 1
# Prefix of the names that `--shm named` creates (on macOS and Windows every service does), and their folders.
NAME_PREFIX = "fsbench-samples-"
NAME_FOLDERS = ["/dev/shm", tempfile.gettempdir(), os.path.join(tempfile.gettempdir(), "shared_memory-rs")]
DTYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i32": "<i4", "f32": "<f4"}


class ServiceError(Exception):
    """The service did not start, failed, died, or broke its protocol."""


class Samples:
    """An iterator over a service's batches. A batch is a dict from name to array or number.

    `command` is the service's command line; the attribute `description` is the service's first line as a dict.
    """

    def __init__(self, command):
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise ServiceError(f"cannot start {command[0]}: {error}") from error
        self._memory = None
        self._held = None
        self._ended = False
        self._error_lines = collections.deque(maxlen=12)
        self._stderr_thread = threading.Thread(target=self._forward_stderr, daemon=True)
        self._stderr_thread.start()
        try:
            self.description = self._describe()
        except BaseException:
            self.close()
            raise

    def _forward_stderr(self):
        """Copies the service's stderr to ours up to its error, which is kept for our own."""
        is_error = False
        for line in self._process.stderr:
            text = line.decode("utf-8", "replace")
            is_error = is_error or text.startswith("error: ")
            if is_error:
                self._error_lines.append(text.rstrip())
            else:
                sys.stderr.write(text)
                sys.stderr.flush()

    def _describe(self):
        line = bytearray()
        while not line.endswith(b"\n"):
            byte = self._process.stdout.read(1)
            if not byte:
                raise self._died("ended before its first batch")
            line += byte
        try:
            description = json.loads(line)
            version, path = description["version"], description["shm"]
            size = description["slots"] * description["slot_bytes"]
        except (ValueError, KeyError, TypeError) as error:
            raise ServiceError(f"the service's first line is not a description: {error!r}") from error
        if version != VERSION:
            raise ServiceError(f"the service speaks version {version} of the protocol, this client version {VERSION}")
        try:
            with open(path, "rb") as file:
                self._memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            if self._process.poll() is not None:
                raise self._died("ended before its first batch") from error
            raise ServiceError(f"cannot map the service's shared memory {path}: {error}") from error
        return description

    def __iter__(self):
        return self

    def __next__(self):
        if self._ended:
            raise StopIteration
        self._give_back()
        byte = self._process.stdout.read(1)
        if not byte:
            raise self._died("died in the middle of its stream")
        slot = byte[0]
        if slot == END:
            self._ended = True
            self.close()
            raise StopIteration
        if slot == FAILED:
            raise self._died("failed")
        if slot >= self.description["slots"]:
            raise ServiceError(f"the service announced slot {slot}, which does not exist")
        self._held = slot
        return self._batch(slot * self.description["slot_bytes"])

    def _batch(self, start):
        def read(dtype, offset, count):
            return numpy.frombuffer(self._memory, DTYPES[dtype], count, start + offset)

        header = {f["name"]: int(read(f["dtype"], f["offset"], 1)[0]) for f in self.description["header"]}
        batch = {name: header[name] for name in ("samples", "positions", "epoch", "batch")}
        for array in self.description["arrays"]:
            count = header[array["count"]]
            if count > array["len"]:
                raise ServiceError(f"the service claims {count} elements of {array['name']}; {array['len']} fit")
            batch[array["name"]] = read(array["dtype"], array["offset"], count)
        return batch

    def _give_back(self):
        if self._held is None:
            return
        slot, self._held = self._held, None
        try:
            self._process.stdin.write(bytes([slot]))
        except OSError:
            pass  # The service is gone; the next read reports why.

    def _died(self, event):
        self._end()
        code = self._process.returncode
        status = f"exit status {code}" if code >= 0 else f"killed by signal {-code}"
        error = "".join(f"\n  {line}" for line in self._error_lines)
        return ServiceError(f"the sample service {event} ({status})" + (f"; it says:{error}" if error else ""))

    def _end(self):
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr_thread.join(5)
        self._process.stderr.close()
        # A service killed before the first slot came back has left its name.
        path = getattr(self, "description", {}).get("shm", "")
        if os.path.dirname(path) in NAME_FOLDERS and os.path.basename(path).startswith(NAME_PREFIX):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def close(self):
        """Ends the service. Arrays of earlier batches stay readable: the memory is freed with the last of them."""
        self._give_back()
        self._end()
        self._process.stdout.close()
        self._memory = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def summarise(batch):
    """Describes a batch in one line."""
    line = f"epoch {batch['epoch']} batch {batch['batch']}: {batch['samples']} samples"
    line += f", {batch['positions']} positions"
    for side in ("stm", "nstm"):
        if f"{side}_indices" in batch:
            line += f", {side} {len(batch[f'{side}_indices']) / max(batch['positions'], 1):.2f} active"
        else:
            bits = numpy.unpackbits(batch[f"{side}_bits"].view(numpy.uint8)).sum(dtype=numpy.int64)
            line += f", {side} {bits / max(batch['positions'], 1):.2f} active"
    if "score" in batch:
        scores = batch["score"][~numpy.isnan(batch["score"])]
        if len(scores):
            line += f", score {scores.mean():.1f} ± {scores.std():.1f} cp ({len(scores)} scored)"
    return line


def main():
    parser = argparse.ArgumentParser(description="Print a summary of a sample service's first batches.")
    parser.add_argument("--batches", type=int, default=5, metavar="N", help="number of batches (default 5; 0 = all)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- fsbench samples-service …")
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        parser.error("give the service's command line after --")
    try:
        with Samples(command) as samples:
            about = samples.description
            print(
                f"{about['set']}: {about['num_features']} features, {about['method']}, {about['layout']}, "
                f"{about['samples_per_epoch']} samples per epoch in batches of {about['batch_size']}"
            )
            for number, batch in enumerate(samples, 1):
                print(summarise(batch), flush=True)
                if number == arguments.batches:
                    break
    except ServiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
