"""Writes results/gpu/kernels/README.md from what bench.py wrote: table.py KERNELS.json"""

import json
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "results/gpu/kernels/README.md"
PARTS = ["forward", "dense", "backward", "update"]
KINDS = {False: "f32", True: "TF32"}


def table(columns, rows):
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def milliseconds(value):
    return f"{value:.3f}" if value is not None else ""


def steps(results):
    rows = []
    for step in results["steps"]:
        rows.append([step["network"], f"{step['batch']:,}", KINDS[step["tf32"]], step["way"],
                     *(milliseconds(step[f"{part}_ms"]) for part in PARTS), milliseconds(step["step_ms"]),
                     f"{step['positions_per_second'] / 1e6:.1f}", milliseconds(step["python_step_ms"])])
    return table(["network", "batch", "products", "way", *PARTS, "step", "M positions/s", "step without a graph"], rows)


def checks(results):
    labels = ["loss", "table", "biases", "layer 0", "layer 1", "layer 2"]
    rows = [[check["network"], KINDS[check.get("tf32", False)], check["way"],
             *(f"{check[label]:.1e}" if label in check else "" for label in labels)] for check in results["checks"]]
    return table(["network", "products", "table's gradient", *labels], rows)


def operations(results):
    lines = []
    for found in results["operations"]:
        numbers = [f"{key.split(' ', 1)[1]} {value:.3f}" for key, value in found.items() if key[0].isdigit()]
        lines.append(f"- {found['network']}, {KINDS[found['tf32']]}: {', '.join(numbers)}")
    return "\n".join(lines)


def variants(results):
    rows = []
    for found in results["variants"]:
        known = {"network", "batch", "tf32", "half_rows", "step_ms", "positions_per_second", "memory_mib", "registers",
                 "python_step_ms", *(f"{part}_ms" for part in PARTS)}
        options = [f"{key.replace('_', ' ')} {value}" for key, value in found.items() if key not in known]
        if found["half_rows"]:
            options.append("rows in f16")
        rows.append([found["network"].replace("virtual indices, ", ""), ", ".join(options),
                     *(milliseconds(found[f"{part}_ms"]) for part in PARTS), milliseconds(found["step_ms"])])
    return table(["network", "variant", *PARTS, "step"], rows)


def sizes(results):
    found = [size for size in results["sizes"] if "sorted_ms" in size]
    ways = [f"{way}_ms" for way in ("product", "sorted")]
    rows = [[f"{size['features']:,} → {size['l1']}", *(milliseconds(size.get(way)) for way in ways)] for size in found]
    return table(["set", "product", "sums by feature"], rows)


def main():
    first = json.loads(pathlib.Path(sys.argv[1]).read_text())
    copies = first["copies"]
    PAGE.write_text(f"""# The kernels of a training step alone

Not the trainer: steps of `scripts/gpu_kernels/bench.py` around PyTorch's products of matrices, on real indices
(selfplay-600.binpack), without the loader. Written by `scripts/gpu_kernels/table.py`; all numbers are in the JSON file
beside this page. {first["card"]}, torch {first["torch"]}; kernels of commit {first["commit"]}.

Milliseconds of a step and of its parts, each as CUDA graphs; every gradient is dense, since nothing is learned while
the time is taken. half-ka-v2-hm and Stockfish's sets have their factor. The table's gradient comes from a product of
matrices (`product`) or from sums by feature (`sorted`).

{steps(first)}

## Correctness

Relative differences from PyTorch in double precision, of the loss and of the gradients of a first step of 4,096
positions.

{checks(first)}

## Operations

Of one step of 16,384 positions, in milliseconds.

{operations(first)}

## Variants

Batches of 16,384, products in f32. `slice`: fours of columns of which blocks work at once, 16 elsewhere. `virtual
indices`: a factor's rows as further indices of a position instead of merged rows. `scalar atomics`: as on cards before
Hopper.

{variants(first)}

## The table's gradient by size of set

Backward pass of (features → width) × 2 → 32 → 1, 16,384 positions.

{sizes(first)}

## Host

Copies from shared memory: {copies["pageable_gb_s"]:.0f} GB/s pageable, {copies["registered_gb_s"]:.0f} GB/s registered as pinned
(`cuMemHostRegister`, {copies["register_ms_per_64_mib"]:.1f} ms for 64 MiB).
""")


if __name__ == "__main__":
    main()
