#!/usr/bin/env python3
"""What large data take: time, memory and disk of every verb that reads them. Writes the tables of src/data/SIZES.md.

    scripts/sizes.py scale   --data GAMES.binpack --folder BIG          # 50 million positions, extrapolated to a billion
    scripts/sizes.py memory  --data GAMES.binpack --games GAMES.pgn.zst --folder BIG   # 2 GB of binpack, PGN and .fsd
    scripts/sizes.py service --data GAMES.binpack --folder BIG --gigabytes 40          # larger than memory, in files
    scripts/sizes.py table                                              # the document from the results; cells of
                                                                        # `memory` without a result stay as they are

The inputs are made by repeating the given files. Results are kept in FOLDER/sizes.json: rows that are there are not
measured again, unless --only names them. FOLDER needs 10 GB (service: --gigabytes more). The peak of memory is the
largest resident set of the process (`ru_maxrss`), pages of mapped files included.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import json
import mmap
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "src/data/SIZES.md"
BILLION = 1_000_000_000


class Bench:
    def __init__(self, arguments):
        self.program = shutil.which(arguments.program) or arguments.program
        self.folder = pathlib.Path(arguments.folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.only = arguments.only
        self.threads = arguments.threads
        self.lock = arguments.lock
        self.path = self.folder / "sizes.json"
        self.results = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.environment = dict(os.environ, FSBENCH_CACHE=str(self.folder / "cache"), RAYON_NUM_THREADS=str(self.threads))

    @contextlib.contextmanager
    def quiet(self):
        """Holds the lock file, if there is one, so that measurements of others wait meanwhile."""
        if self.lock is None:
            yield
            return
        with open(self.lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def run(self, command, limit=None):
        """Seconds, processor seconds, peak of memory in bytes and stdout of a command; `{}` in it is a scratch folder.

        The command is interrupted after `limit` seconds.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            words = [word.replace("{}", scratch) for word in shlex.split(command)]
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
                start = time.monotonic()
                process = subprocess.Popen([self.program, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=errors, env=self.environment)
                parts, read = {}, None
                reason = None
                while True:
                    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                    if pid:
                        break
                    parts = peak_parts(process.pid) or parts
                    if limit and time.monotonic() - start > limit:
                        reason, limit = "interrupted", None
                        read = share_read(process.pid, self.folder)
                        process.send_signal(signal.SIGTERM)
                    time.sleep(0.02)
                process.returncode = os.waitstatus_to_exitcode(status)
                seconds = time.monotonic() - start
                out.seek(0), errors.seek(0)
                text, complaint = out.read().decode(), errors.read().decode(errors="replace")
            if process.returncode != 0 and reason is None:
                sys.exit(f"fsbench {command}: status {process.returncode}\n{complaint[-2000:]}")
            written = sum(path.stat().st_size for path in pathlib.Path(scratch).rglob("*") if path.is_file())
        return {"command": command, "seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime,
                "peak": usage.ru_maxrss * 1024, "written": written, **parts, "ended": reason or "done", "read": read, "out": text}

    def measure(self, part, name, command, **more):
        if not self.wants(part, name):
            return None
        print(f"{part}: {name}: fsbench {command}", file=sys.stderr)
        found = self.run(command, **more)
        out = found.pop("out")
        self.results.setdefault(part, {})[name] = found
        self.save()
        print(f"  {found['seconds']:.1f} s, {found['peak'] / 1e6:.0f} MB", file=sys.stderr)
        return out

    def wants(self, part, name):
        """Whether a row is to be measured: one named by --only, or one without a result."""
        return self.only in name if self.only else name not in self.results.get(part, {})

    def save(self):
        self.results["machine"] = machine()
        self.path.write_text(json.dumps(self.results, indent=1))

    def repeated(self, name, sources, size):
        """A file of at least `size` bytes that repeats `sources`, whose formats allow that."""
        path = self.folder / name
        if not path.exists() or path.stat().st_size < size:
            with open(path, "wb") as out:
                while out.tell() < size:
                    for source in sources:
                        with open(source, "rb") as file:
                            shutil.copyfileobj(file, out, 1 << 20)
        return path

    def samples(self, name):
        return json.loads(self.run(f"dataset info {name} --format json")["out"])["samples"]


def peak_parts(pid):
    """The largest sum of anonymous, file and shared memory seen, from /proc."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = dict(re.findall(r"(VmHWM|RssAnon|RssFile|RssShmem):\s+(\d+) kB", text))
    if "RssAnon" not in found:
        return None
    return {name: int(value) * 1024 for name, value in found.items()}


def share_read(pid, folder):
    """The share of the file below `folder` that a process has read farthest; `None` if it reads none or maps it."""
    shares = []
    with contextlib.suppress(OSError):
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            path = link.readlink()
            position = int(re.search(r"pos:\s+(\d+)", pathlib.Path(f"/proc/{pid}/fdinfo/{link.name}").read_text())[1])
            if path.parent == folder and position > 0:
                shares.append(position / path.stat().st_size)
    return max(shares, default=None)


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return {"cpu": cpu[1] if cpu else "?", "cores": os.cpu_count(), "memory": int(memory[1]) * 1024}


def prepare_fsd(bench, sources):
    """50 million positions as a binpack and as a .fsd file."""
    one = bench.repeated("one.binpack", sources, 1)
    per_copy = bench.samples(one)
    copies = -(-50_000_000 // per_copy)
    fifty = bench.repeated("fifty.binpack", [one], copies * one.stat().st_size)
    fsd = bench.folder / "fifty.fsd"
    if not fsd.exists():
        bench.run(f"dataset convert {fifty} {fsd}")
    eval_fsd = bench.folder / "fifty-eval.fsd"
    if not eval_fsd.exists():
        bench.run(f"dataset build {fsd} --method eval --min-ply 0 --out {eval_fsd}")
    return fifty, fsd, eval_fsd, copies * per_copy


def scale(bench, arguments):
    fifty, fsd, eval_fsd, positions = prepare_fsd(bench, arguments.data)
    bench.results["positions"] = positions
    bench.results["bytes"] = {"binpack": fifty.stat().st_size, "fsd": fsd.stat().st_size}
    build = "dataset build fifty.binpack --method eval --min-ply 0 --out {}/x.fsd"
    bench.measure("scale", "build", build)
    bench.measure("scale", "build, dedup and shuffle", f"{build} --dedup move --shuffle")
    bench.measure("scale", "build, one of four shards", "dataset build fifty.binpack fifty.binpack fifty.binpack fifty.binpack "
                  "--method eval --min-ply 0 --shard 1/4 --out {}/x.shard")
    shard = bench.folder / "x.shard"
    if not bench.only or bench.only in "merge":
        bench.run(f"dataset build fifty.binpack --method eval --min-ply 0 --shard 0/1 --out {shard} --force")
        bench.measure("scale", "merge", "dataset merge x.shard --out {}/x.fsd")
        shard.unlink()
    bench.measure("scale", "convert", "dataset convert fifty.binpack {}/x.fsd")
    bench.measure("scale", "convert back", "dataset convert fifty.fsd {}/x.binpack")
    if shutil.which("stockfish"):
        label(bench)
    service(bench, "scale", "service, first batch (.fsd)", ["fifty-eval.fsd"])
    service(bench, "scale", "service, first batch (binpack)", ["fifty.binpack"])
    bench.measure("scale", "train, one epoch (piece, 256, .fsd)",
                  "train piece --data fifty-eval.fsd --l1 256 --batch-size 16384 --epochs 1 --out {}/net")


def label(bench):
    """Labels and games of an engine: rates over a few thousand, since an engine is slower than all else."""
    few = bench.folder / "few.fsd"
    if not few.exists():
        bench.run(f"dataset build one.binpack --method eval --samples 3000 --out {few}")
    name = "label, 1,000 nodes per position"
    text = bench.measure("scale", name, "dataset build few.fsd --method eval --engine stockfish "
                         f"--nodes 1000 --concurrency {bench.threads} --out {{}}/x.fsd --format json")
    if text:
        bench.results["scale"][name]["positions"] = json.loads(text)["labelling"]["positions"]
    name = "generate, 1,000 nodes per move"
    text = bench.measure("scale", name, "dataset generate --engine stockfish --nodes 1000 --games 200 "
                         f"--concurrency {bench.threads} --out {{}}/x.binpack --format json")
    if text:
        bench.results["scale"][name]["positions"] = json.loads(text)["plies"]
    bench.save()


def service(bench, part, name, files, samples=None):
    """Time to the first batch, rate, and peak of memory of a pass over the files by a consumer that takes no time.

    With `samples`, the pass ends after so many, which come from all files.
    """
    if not bench.wants(part, name):
        return
    print(f"{part}: {name}", file=sys.stderr)
    command = [bench.program, "samples-service", "piece", "--batch-size", "16384", "--threads", str(bench.threads)]
    for file in files:
        command += ["--data", str(file)]
    if samples:
        command += ["--epoch-samples", str(samples)]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=bench.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=bench.environment)
    description = json.loads(process.stdout.readline())
    slot = process.stdout.read(1)[0]
    first = time.monotonic() - start
    with bench.quiet():
        before = processor_seconds(process.pid)
        served, seconds, rates, peak = consume(process, slot, description)
        busy = processor_seconds(process.pid) - before
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or served != description["samples_per_epoch"]:
        sys.exit(f"the service ended with status {process.returncode} after {served} samples")
    rates.sort()
    bench.results.setdefault(part, {})[name] = {
        "command": " ".join(command[1:4]), "seconds": first + seconds, "first": first,
        "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024, **peak, "samples": served,
        "rate": served / seconds, "per_processor_second": served / busy, "median_rate": rates[len(rates) // 2] if rates else None,
        "bytes": sum((bench.folder / file).stat().st_size for file in files), "written": 0,
    }
    bench.save()
    print(f"  first batch after {first:.1f} s, then {seconds:.1f} s, {served / seconds / 1e6:.2f} M/s, "
          f"{served / busy / 1e6:.2f} M per processor second, {usage.ru_maxrss / 1e3:.0f} MB", file=sys.stderr)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def consume(process, slot, description):
    """Takes all batches; returns the samples, seconds, samples per second of every 200 batches, and peaks of memory."""
    batches, start, rates, peak = 0, time.monotonic(), [], {}
    at = start
    while slot < 254:
        batches += 1
        if batches % 200 == 0:
            now, parts = time.monotonic(), peak_parts(process.pid) or {}
            rates.append(200 * description["batch_size"] / (now - at))
            at = now
            peak = {key: max(value, peak.get(key, 0)) for key, value in parts.items()}
        process.stdin.write(bytes([slot]))
        process.stdin.flush()
        slot = process.stdout.read(1)[0]
    seconds = time.monotonic() - start
    complete = slot == 255 and batches == description["batches_per_epoch"]
    return description["samples_per_epoch"] if complete else batches, seconds, rates, peak


def service_large(bench, arguments):
    """As many samples of one file of 50 million positions, and of files that are larger than memory together.

    Files that are all distinct come from the disk. With fewer distinct ones, which the page cache holds, the rate is that of
    the program.
    """
    _, _, eval_fsd, _ = prepare_fsd(bench, arguments.data)
    size = eval_fsd.stat().st_size
    count = max(2, round(arguments.gigabytes * 1e9 / size))
    distinct = min(count, arguments.distinct or count)
    files = [bench.folder / f"large-{number}.fsd" for number in range(count)]
    name = "large" if distinct == count else "large, cached"
    try:
        for number, file in enumerate(files):
            # One that an interrupted run left may be another name of the first.
            file.unlink(missing_ok=True)
            if number >= distinct:
                file.hardlink_to(files[number % distinct])
            else:
                if shutil.disk_usage(bench.folder).free < size + 5e9:
                    sys.exit(f"{bench.folder} is too full for {distinct * size / 1e9:.0f} GB; see --distinct")
                shutil.copyfile(eval_fsd, file)
        os.sync()
        with bench.quiet():
            bench.results["disk"] = disk(files[:distinct])
        service(bench, "service", "small", [eval_fsd.name])
        samples = bench.results["service"]["small"]["samples"]
        service(bench, "service", name, [file.name for file in files], samples)
        bench.results["service"][name]["distinct"] = distinct * size
        service(bench, "service", "small again", [eval_fsd.name])
        bench.save()
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def disk(files, seconds=5):
    """Bytes per second of four threads that read 160 kB from random places, past the page cache."""
    length, page = 160 * 1024, 4096
    end = time.monotonic() + seconds

    def read(seed):
        draw, buffer, total = random.Random(seed), mmap.mmap(-1, length), 0
        opened = [os.open(file, os.O_RDONLY | os.O_DIRECT) for file in files]
        last = (os.path.getsize(files[0]) - length) // page
        while time.monotonic() < end:
            total += os.preadv(draw.choice(opened), [buffer], draw.randrange(last) * page)
        for descriptor in opened:
            os.close(descriptor)
        return total

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        return sum(threads.map(read, range(4))) / seconds


def memory(bench, arguments):
    """The peak of memory of every verb over 2 GB."""
    fifty, fsd, eval_fsd, _ = prepare_fsd(bench, arguments.data)
    size = int(arguments.gigabytes * 1e9) if arguments.gigabytes < 40 else 2_000_000_000
    binpack = bench.repeated("two.binpack", [bench.folder / "one.binpack"], size)
    pgn = bench.folder / "two.pgn"
    if not pgn.exists() or pgn.stat().st_size < size:
        one = bench.folder / "one.pgn"
        with open(one, "wb") as out:
            subprocess.run(["zstd", "-dc", str(pathlib.Path(arguments.games).resolve())], stdout=out, check=True)
        bench.repeated("two.pgn", [one], size)
    net = bench.folder / "net"
    if not net.exists():
        bench.run(f"train piece --data one.binpack --l1 64 --epochs 1 --epoch-samples 200000 --out {net}")
    bench.results["memory_bytes"] = {"binpack": binpack.stat().st_size, "pgn": pgn.stat().st_size, "fsd": fsd.stat().st_size}
    limit = arguments.limit
    inputs = [(".fsd", "fifty.fsd", "fifty-eval.fsd"), ("binpack", "two.binpack", "two.binpack"), ("PGN", "two.pgn", None)]
    for kind, name, built in inputs:
        rows = {
            "dataset info": f"dataset info {name}",
            "dataset stats": f"dataset stats {name} --out {{}}/stats",
            "dataset verify": f"dataset verify {name}",
            "dataset convert": f"dataset convert {name} {{}}/x.fsd",
            "dataset build": f"dataset build {name} --method eval --per-game 1 --out {{}}/x.fsd",
            "dataset build, dedup, shuffle": f"dataset build {name} --method eval --per-game 8 --dedup position --shuffle --out {{}}/x.fsd",
            "dataset build, shard": f"dataset build {name} --method eval --shard 0/1 --out {{}}/x.shard",
            "select": f"select piece --top 8 --data {name} --out {{}}/x.idx",
            "measure updates": f"measure updates piece --data {name}",
            "measure activity": f"measure activity --net net/network.safetensors --data {name}",
            "measure error": f"measure error --net net/network.safetensors --checkpoint net/checkpoint.safetensors --data {name}",
            "measure speed": f"measure speed --net net/network.safetensors --data {name}",
            "measure loss": f"measure loss net/network.safetensors --data {name}",
            "measure importance": f"measure importance net/network.safetensors --data {name}",
        }
        if built:
            # PGN is built first: as `dataset build`, then as `.fsd`.
            rows["samples-service"] = f"samples-service piece --data {built} --bench"
            rows["train"] = f"train piece --data {built} --l1 32 --epochs 1 --epoch-samples 4000000 --out {{}}/net"
        for verb, command in rows.items():
            bench.measure("memory", f"{verb}|{kind}", command, limit=limit)


def table(bench, arguments):
    del arguments
    text = DOCUMENT.read_text()
    for part, rows in [("scale", scale_table), ("memory", memory_table), ("service", service_table)]:
        if part in bench.results:
            pattern = rf"(<!-- {part} -->\n).*?(<!-- end -->)"
            text = re.sub(pattern, lambda found: found[1] + rows(bench.results, found[0]) + found[2], text, flags=re.DOTALL)
    DOCUMENT.write_text(text)


def duration(seconds):
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.0f} days"


def size(count):
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def scale_table(results, _):
    positions, machine = results["positions"], results["machine"]
    lines = [f"Measured over {positions / 1e6:.1f} million positions ({size(results['bytes']['binpack'])} as binpack, "
             f"{size(results['bytes']['fsd'])} as `.fsd`) on {machine['cores']} cores of {machine['cpu']}.", "",
             "| | time | processor time | peak of memory | output | a billion: processor time | output |",
             "|---|---|---|---|---|---|---|"]
    for name, row in results["scale"].items():
        count = row.get("positions") or row.get("samples") or positions
        factor = BILLION / count
        first = f" (first batch after {duration(row['first'])})" if "first" in row else ""
        many = f" for {count:,}" if count != positions and "positions" in row else ""
        lines.append(f"| {name} | {duration(row['seconds'])}{many}{first} | {duration(row['cpu'])} | {size(row['peak'])} | "
                     f"{size(row['written']) if row['written'] else '–'} | {duration(row['cpu'] * factor)} | "
                     f"{size(row['written'] * factor) if row['written'] and not name.startswith('train') else '–'} |")
    return "\n".join(lines) + "\n"


def memory_table(results, before):
    """The table; cells without a result are those of the table `before`."""
    kinds = ["binpack", "PGN", ".fsd"]
    sizes = results["memory_bytes"]
    lines = [f"Peak of memory over a binpack of {size(sizes['binpack'])}, PGN of {size(sizes['pgn'])} and a `.fsd` file of "
             f"{size(sizes['fsd'])}.", "", "| | " + " | ".join(kinds) + " |", "|---|" + "---|" * len(kinds)]
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| (.*?) \| (.*?) \|$", before, flags=re.MULTILINE)
    known = {verb: dict(zip(kinds, cells)) for verb, *cells in rows}
    for verb in dict.fromkeys([*known, *(name.split("|")[0] for name in results["memory"])]):
        cells = []
        for kind in kinds:
            row = results["memory"].get(f"{verb}|{kind}")
            if row is None:
                cells.append(known.get(verb, {}).get(kind, "–"))
            else:
                share = row.get("read")
                mark = "\\*" if share is None else f" ({share:.0%})"
                cells.append(size(row["peak"]) + ("" if row["ended"] == "done" else mark))
        lines.append(f"| `{verb}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def service_table(results, _):
    raw = results["disk"]
    lines = [f"The machine has {size(results['machine']['memory'])} of memory. Its disk gives {raw / 1e6:.0f} MB/s, that is "
             f"{raw / 40e6:.1f} million samples, to reads of 160 kB at random places that pass by the page cache.", "",
             "| | files | of them distinct | samples served | first batch after | samples per second | per processor second | peak of memory | of it anonymous, files, slots |",
             "|---|---|---|---|---|---|---|---|---|"]
    rows = results["service"]
    for name in filter(rows.get, ["small", "large, cached", "large", "small again"]):
        row = rows[name]
        parts = ", ".join(size(row[key]) for key in ("RssAnon", "RssFile", "RssShmem"))
        lines.append(f"| {name} | {size(row['bytes'])} | {size(row.get('distinct', row['bytes']))} | "
                     f"{row['samples'] / 1e6:.0f} million | {duration(row['first'])} | "
                     f"{row['rate'] / 1e6:.2f} million | {row['per_processor_second'] / 1e6:.2f} million | {size(row['peak'])} | {parts} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["scale", "memory", "service", "table"])
    parser.add_argument("--program", default="fsbench", help="the program (default: fsbench in PATH)")
    parser.add_argument("--folder", default="sizes", help="folder for the data and the results")
    parser.add_argument("--data", nargs="+", default=[], help="binpacks that are repeated")
    parser.add_argument("--games", help="PGN, compressed by zstd, that is repeated")
    parser.add_argument("--gigabytes", type=float, default=40, help="size of the files of `service`")
    parser.add_argument("--distinct", type=int, help="service: distinct files, which the page cache can hold; the others are further names of these")
    parser.add_argument("--limit", type=float, help="memory: interrupt a verb after so many seconds (marked by the share of the file that it had read, or by *)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--lock", help="a file that is locked while rates are measured")
    parser.add_argument("--only", help="only rows whose name contains this")
    arguments = parser.parse_args()
    arguments.data = [str(pathlib.Path(path).resolve()) for path in arguments.data]
    parts = {"scale": scale, "memory": memory, "service": service_large, "table": table}
    parts[arguments.part](Bench(arguments), arguments)


if __name__ == "__main__":
    main()
