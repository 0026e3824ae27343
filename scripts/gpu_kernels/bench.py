"""Measures the kernels of src/bin/fsbench-tch/kernels on this machine's NVIDIA GPU, in whole training steps around
torch's products of matrices, and checks them against torch in double precision. Not the trainer: without its loader.

    bench.py DATA OUT COMMIT [SECONDS]

DATA: folder with SET.npz (stm_idx, stm_off, nstm_idx, nstm_off, piece_count, score); COMMIT: of the kernels; SECONDS: when
to begin nothing more. Writes OUT/kernels.json."""

import ctypes
import dataclasses
import gc
import json
import pathlib
import sys
import time

import numpy as np
import torch

from step import STATE, Batch, Loss, Pointer, Shape, Trainer, compile_for_gpu, find_nvrtc, numbers_of, padded

STARTED = time.time()
BUDGET = float(sys.argv[4]) if len(sys.argv) > 4 else 200.0
EVAL = dict(form=0, power=2.6, output_scale=361.0, epsilon=0.0, kappa=1.0, centipawns=600.0)
STACKS = dict(activation="pairwise", hidden_activation="dual", psqt=True, buckets=8)
HALF_KA, VIRTUAL = 22528, 704
NETWORKS = {
    "piece 256→1": ("piece", Shape(768, 256, activation="screlu", sum_scale=1.0, product_scale=1.0)),
    "piece 256→32→1": ("piece", Shape(768, 256, (32,), activation="screlu")),
    "half-ka-v2-hm 256→32→1": ("half-ka-v2-hm", Shape(HALF_KA, 256, (32,))),
    "stockfish-15.1": ("half-ka-v2-hm", Shape(HALF_KA, 1024, (15, 32), **STACKS, skip=True)),
    "stockfish-19": ("sfnnv16", Shape(86896, 1024, (32, 32), **STACKS, skip_difference=True, concatenated=True,
                                      narrow=86896 - HALF_KA, sum_scale=1.0, product_scale=1.0)),
}
KINDS = {"f4": torch.float32, "i4": torch.int32, "u1": torch.uint8, "u2": torch.bfloat16, "u4": torch.int32}


class Gpu:
    """The kernels compiled by NVRTC, on torch's tensors and its current stream."""

    driver = None
    nvrtc = None

    def __init__(self, shape, more=()):
        if Gpu.driver is None:
            torch.zeros(1, device="cuda")
            Gpu.driver, Gpu.nvrtc = ctypes.CDLL("libcuda.so.1"), find_nvrtc()
        self.multiprocessors = torch.cuda.get_device_properties().multi_processor_count
        major, minor = torch.cuda.get_device_capability()
        self.code, log = compile_for_gpu(Gpu.nvrtc, f"sm_{major}{minor}", shape.macros(), more)
        self.module, self.kernels = Pointer(), {}
        self.call("cuModuleLoadData", ctypes.byref(self.module), self.code)

    def call(self, name, *arguments):
        result = getattr(Gpu.driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: CUDA's error {result}")

    def zeros(self, *size, dtype="f4"):
        if dtype is STATE:
            return torch.zeros(STATE.itemsize // 8, dtype=torch.float64, device="cuda")
        return torch.zeros(*size, dtype=KINDS[dtype], device="cuda")

    def upload(self, values):
        return (values if torch.is_tensor(values) else torch.from_numpy(values)).to("cuda", copy=True)

    def clear(self, array):
        array.zero_()

    def pointer(self, array):
        return None if array is None else array.data_ptr()

    def launch(self, name, grid, block, *arguments):
        if name not in self.kernels:
            self.kernels[name] = Pointer()
            self.call("cuModuleGetFunction", ctypes.byref(self.kernels[name]), self.module, name.encode())
        stream = Pointer(torch.cuda.current_stream().cuda_stream)
        pointers, _kept = arguments_of(arguments)
        self.call("cuLaunchKernel", self.kernels[name], *grid, 1, *block, 1, 0, stream, pointers, None)

    def registers(self):
        value, numbers = ctypes.c_int(), {}
        for name, kernel in self.kernels.items():
            numbers[name] = []
            for attribute in (4, 3):  # registers, local bytes
                self.call("cuFuncGetAttribute", ctypes.byref(value), attribute, kernel)
                numbers[name].append(value.value)
        return numbers

    def product(self, a, b, out):
        torch.mm(a, b.t(), out=out)

    def plain_product(self, a, b, out):
        torch.mm(a, b, out=out)

    def add_product(self, a, b, out):
        out.addmm_(a.t(), b)

    def add_bfloat_product(self, a, b, out):
        try:
            torch.addmm(out, a.t(), b, out_dtype=torch.float32, out=out)
        except (RuntimeError, TypeError) as error:
            if not FALLBACKS:
                print("addmm with out_dtype:", repr(error)[:300], flush=True)
            FALLBACKS.append(1)
            out.add_(torch.mm(a.t(), b, out_dtype=torch.float32))


FALLBACKS = []


def arguments_of(arguments):
    return (Pointer * len(arguments))(*(ctypes.addressof(argument) for argument in arguments)), arguments


def graph_of(work, warm=True):
    """A CUDA graph of `work`."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        if warm:
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def milliseconds(graphs, rounds):
    """Median time of one replay, the graphs in turn, in groups of all of them."""
    times = []
    for number in range(rounds + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for graph in graphs:
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        if number >= 2:
            times.append(begin.elapsed_time(end) / len(graphs))
    return float(np.median(times))


def host_batches(data, size):
    """Up to four batches of so many positions."""
    positions = len(data["piece_count"])
    starts = range(0, min(positions, 4 * size), size)
    for start in starts:
        offsets, indices = [], []
        for side in ("stm", "nstm"):
            all_offsets = data[side + "_off"].astype(np.int64)
            here = all_offsets[start:start + size + 1]
            offsets.append((here - here[0]).astype(np.int32))
            indices.append(data[side + "_idx"][here[0]:here[-1]])
        score = data["score"][start:start + size]
        targets = (1 / (1 + np.exp(-score / 410))).astype(np.float32)
        yield offsets, indices, data["piece_count"][start:start + size], targets


def random_network(shape):
    torch.manual_seed(7)
    table = torch.empty(shape.features, shape.stride, device="cuda").uniform_(-0.05, 0.05)
    table[:, shape.l1 + (shape.buckets if shape.psqt else 0):] = 0
    biases = torch.zeros(shape.stride, device="cuda")
    biases[:shape.l1] = 0.2
    layers = []
    for outputs, inputs, stride in shape.layers():
        layer = torch.zeros(outputs, stride, device="cuda")
        layer[:, :inputs] = torch.randn(outputs, inputs, device="cuda") * 0.5 / inputs**0.5
        layers.append(layer)
    return table, biases, layers


def has_factor(name):
    return name.startswith(("half", "stockfish"))


def virtual_inputs(name, shape):
    """The factor of half-ka-v2-hm: a piece's place without the king's."""
    if not has_factor(name):
        return None
    first = shape.features - HALF_KA
    starts = np.maximum(np.arange(shape.features + 1) - first, 0)
    return starts, np.arange(HALF_KA) % VIRTUAL, VIRTUAL


def trainer_of(name, shape, device, **options):
    table, biases, layers = random_network(shape)
    scales = {"limits": {"table": 128.0, "narrow": 0.5, "layer": 2.0, "grid": 64.0}}
    trainer = Trainer(device, shape, table, biases, layers, virtual_inputs(name, shape), **scales, **options)
    set_step(trainer, 1)
    return trainer


def set_step(trainer, step, rate=1e-3):
    trainer.numbers = numbers_of("adam", step, rate)


def step_of(trainer, batch, loss):
    trainer.forward(batch)
    trainer.dense(batch, loss)
    trainer.backward(batch)
    trainer.update()


def reference(shape, trainer, batch, loss):
    """Loss and gradients by torch in double precision, at the weights that the kernels read."""
    double = lambda array: array.double().requires_grad_()
    values = trainer.arrays["table"]["values"]
    copy = trainer.arrays["table"]["copy"]
    table = double(copy if copy is not None else values)
    if shape.half_rows:
        table = double(trainer.arrays["table"]["half"].view(torch.float16).float())
    biases = double(trainer.arrays["biases"]["values"])
    layers = [double(trainer.layer(n)["copy"]) for n in range(len(trainer.sizes))]
    indices, offsets = batch.kept[:2], batch.kept[2:]
    n = batch.positions
    bag = lambda side: torch.nn.functional.embedding_bag(indices[side], table, offsets[side], mode="sum",
                                                         include_last_offset=True)
    sides = [bag(0) + biases[0], bag(1) + biases[0]]
    sum_scale, product_scale = (float(np.float32(x)) for x in (shape.sum_scale, shape.product_scale))

    def activate(name, x, scale):
        clipped = x.clamp(0, 1)
        if name == "screlu":
            return clipped.square() * scale
        if name == "pairwise":
            first, second = clipped.chunk(2, 1)
            return first * second * scale
        if name == "dual":
            return torch.cat([(x * x * scale).clamp(max=1), clipped], 1)
        return clipped

    out = torch.cat([activate(shape.activation, x[:, :shape.l1], sum_scale) for x in sides], 1)
    bucket = ((batch.pieces.long() - 1) // 4).clamp(0, shape.buckets - 1)
    at = torch.arange(n, device="cuda")

    def layer(number, x):
        outputs, inputs, _ = trainer.sizes[number]
        everything = x @ layers[number][:, :inputs].t() + layers[number][:, inputs]
        return everything.view(n, shape.buckets, outputs // shape.buckets)[at, bucket]

    y = layer(0, out)
    if shape.hidden:
        z, x = y, activate(shape.activation_of(0), y[:, :shape.hidden[0]], product_scale)
        if len(shape.hidden) > 1:
            second = activate(shape.activation_of(1), layer(1, x), product_scale)
            x = torch.cat([x, second], 1) if shape.concatenated else second
        y = layer(len(shape.hidden), x)
        added, subtracted = shape.skips
        if added >= 0:
            y = y + z[:, added:added + 1]
        if subtracted >= 0:
            y = y - z[:, subtracted:subtracted + 1]
    y = y[:, 0]
    if shape.psqt:
        y = y + (sides[0] - sides[1])[at, shape.l1 + bucket] / 2
    error = (y * loss.centipawns / loss.output_scale).sigmoid() - batch.targets.double()
    total = error.abs().pow(loss.power).sum()
    (total * loss.weight).backward()
    return float(total.detach()), [table.grad, biases.grad, *(layer.grad for layer in layers)]


def check(name, shape, data, variant, device, tf32=False):
    """Relative differences from double precision: of the loss and of the gradients."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    batch = Batch(device, *next(host_batches(data, 4096)))
    loss = Loss(**EVAL, weight=1 / batch.samples)
    trainer = trainer_of(name, shape, device, **variant)
    trainer.forward(batch)
    trainer.dense(batch, loss)
    trainer.backward(batch)
    value, expected = reference(shape, trainer, batch, loss)
    found = [trainer.arrays[key]["gradient"] for key in list(trainer.arrays)]
    found[0], found[1] = found[0][:shape.features], found[1][0]
    off = {}
    labels = ["table", "biases", *(f"layer {n}" for n in range(len(trainer.sizes)))]
    for label, ours, theirs in zip(labels, found, expected):
        if label.startswith("layer"):
            inputs = trainer.sizes[int(label[6:])][1] + 1
            ours, theirs = ours[:, :inputs], theirs[:, :inputs]
        theirs = theirs.view(ours.shape)
        off[label] = float((ours - theirs).norm() / theirs.norm())
    off["loss"] = abs(float(trainer.state[0]) - value) / value
    return off


def measure(name, shape, data, size, variant, device, parts=True, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.cuda.reset_peak_memory_stats()
    batches = [Batch(device, *batch) for batch in host_batches(data, size)]
    loss = Loss(**EVAL, weight=1 / batches[0].samples)
    trainer = trainer_of(name, shape, device, **variant)
    # Nothing is learned: the network stays as it is.
    set_step(trainer, 1000, 0.0)
    step_of(trainer, batches[0], loss)
    torch.cuda.synchronize()
    rounds = 12 if size < 60000 else 8
    result = {"network": name, "batch": size, "tf32": tf32, "half_rows": shape.half_rows, **variant}
    graphs = [graph_of(lambda batch=batch: step_of(trainer, batch, loss)) for batch in batches]
    if len(graphs) == 1:
        graphs = graphs * 2
    result["step_ms"] = milliseconds(graphs, rounds)
    result["positions_per_second"] = size / result["step_ms"] * 1e3
    result["memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    if parts:
        # An update alone would find gradients of zero, which it need not clear.
        for part, work in [("forward", trainer.forward), ("dense", lambda batch: trainer.dense(batch, loss)),
                           ("backward", trainer.backward),
                           ("update", lambda batch: (trainer.backward(batch), trainer.update()))]:
            graphs = [graph_of(lambda batch=batch: [work(batch) for _ in range(4)]) for batch in batches]
            result[f"{part}_ms"] = milliseconds(graphs, rounds) / 4
        result["update_ms"] -= result["backward_ms"]
        begin = time.perf_counter()
        for number in range(20):
            step_of(trainer, batches[number % len(batches)], loss)
        torch.cuda.synchronize()
        result["python_step_ms"] = (time.perf_counter() - begin) / 20 * 1e3
    result["registers"] = device.registers()
    return result


def operations(name, shape, data, size, variant, device, tf32=False):
    """Times of every operation of a step on its own."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    batch = Batch(device, *next(host_batches(data, size)))
    loss = Loss(**EVAL, weight=1 / batch.samples)
    trainer = trainer_of(name, shape, device, **variant)
    set_step(trainer, 1000, 0.0)
    methods = ("launch", "product", "plain_product", "add_product", "add_bfloat_product", "clear")
    real = {key: getattr(device, key) for key in methods}
    calls = []

    def noted(method):
        def call(*arguments):
            calls.append((method, arguments))
            return real[method](*arguments)
        return call

    try:
        for method in methods:
            setattr(device, method, noted(method))
        step_of(trainer, batch, loss)
    finally:
        for method in methods:
            setattr(device, method, real[method])
    result = {"network": name, "batch": size, "tf32": tf32, **variant}
    for number, (method, arguments) in enumerate(calls):
        label = arguments[0] if method == "launch" else method
        # Every call writes behind what the call before has written.
        if label == "place_features":
            continue
        graph = graph_of(lambda: [real[method](*arguments) for _ in range(8)])
        result[f"{number} {label}"] = round(milliseconds([graph], 10) / 8, 4)
    return result


def by_size(data, copies, l1, device_of):
    """Backward passes of (768 · copies → l1) × 2 → 32 → 1, by every way."""
    shape = Shape(768 * copies, l1, (32,), activation="screlu")
    random = np.random.default_rng(3)
    moved = {key: data[key] for key in ("piece_count", "score")}
    for side in ("stm", "nstm"):
        counts = np.diff(data[side + "_off"].astype(np.int64))
        bucket = np.repeat(random.integers(0, copies, len(counts)), counts)
        moved[side + "_idx"] = (data[side + "_idx"] + 768 * bucket).astype(np.int32)
        moved[side + "_off"] = data[side + "_off"]
    device = device_of(shape)
    batches = [Batch(device, *batch) for batch in host_batches(moved, 16384)]
    result = {"features": shape.features, "l1": l1, "batch": 16384}
    for way in ("sorted", "product"):
        trainer = trainer_of("piece", shape, device, way=way)
        set_step(trainer, 1000, 0.0)
        step_of(trainer, batches[0], Loss(**EVAL, weight=1 / 16384))
        graphs = [graph_of(lambda batch=batch: trainer.backward(batch)) for batch in batches]
        result[f"{way}_ms"] = milliseconds(graphs, 10)
    return result


def products(features, l1):
    """Layouts of the product for the table's gradient, 16,384 positions."""
    columns, rows = padded(features + 1, 8), 2 * 16384
    active = (torch.rand(rows, columns, device="cuda") < 0.02).bfloat16()
    high = torch.randn(rows, l1, device="cuda").bfloat16()
    both = torch.randn(rows, 2 * l1, device="cuda").bfloat16()
    out, wide = torch.zeros(columns, l1, device="cuda"), torch.zeros(columns, 2 * l1, device="cuda")
    turned = torch.zeros(l1, columns, device="cuda")
    ways = {
        "add, half": lambda: torch.addmm(out, active.t(), high, out_dtype=torch.float32, out=out),
        "half": lambda: torch.mm(active.t(), high, out_dtype=torch.float32, out=out),
        "both": lambda: torch.mm(active.t(), both, out_dtype=torch.float32, out=wide),
        "turned half": lambda: torch.mm(high.t(), active, out_dtype=torch.float32, out=turned),
        "half, f16": lambda: torch.mm(active.half().t(), high.half(), out_dtype=torch.float32, out=out),
    }
    return {"features": features, "l1": l1,
            **{what: milliseconds([graph_of(lambda: [work() for _ in range(4)])], 10) / 4
               for what, work in ways.items()}}


def losses_over(name, shape, data, variant, device, steps=200):
    """Mean losses of the first and the last steps of a short training."""
    batches = [Batch(device, *batch) for batch in host_batches(data, 4096)]
    loss = Loss(**EVAL, weight=1 / batches[0].samples)
    trainer = trainer_of(name, shape, device, **variant)
    seen, before = [], 0.0
    for step in range(1, steps + 1):
        set_step(trainer, step)
        step_of(trainer, batches[step % 4], loss)
        if step in (20, steps - 20, steps):
            total = float(trainer.state[0])
            seen.append((total - before) / 4096)
            before = total
    assert trainer.state.view(torch.int32)[14].item() == 0, "diverged"
    return [seen[0] / 20, seen[2] / 20]


def with_virtual_indices(shape, data):
    """Every feature followed by its virtual input, as one more row."""
    doubled = {key: data[key] for key in ("piece_count", "score")}
    for side in ("stm", "nstm"):
        indices = data[side + "_idx"]
        first = shape.features - HALF_KA
        virtual = np.where(indices >= first, shape.features + (indices - first) % VIRTUAL, -1)
        both = np.stack([indices, virtual], 1).reshape(-1)
        keep = both >= 0
        counts = np.concatenate([[0], np.cumsum(keep)])
        doubled[side + "_idx"] = both[keep].astype(np.int32)
        doubled[side + "_off"] = counts[2 * data[side + "_off"].astype(np.int64)].astype(np.int32)
    return doubled


def host_copies():
    """Rates of copies from shared memory, pageable and registered as pinned."""
    import mmap
    size = 64 << 20
    path = pathlib.Path("/dev/shm/fsbench-copy")
    with open(path, "wb+") as file:
        file.truncate(size)
        memory = mmap.mmap(file.fileno(), size)
    path.unlink()
    host = torch.frombuffer(memory, dtype=torch.uint8)
    host.fill_(1)
    device = torch.empty(size, dtype=torch.uint8, device="cuda")

    def rate():
        times = []
        for _ in range(6):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            Gpu.driver.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(device.data_ptr()), Pointer(host.data_ptr()),
                                            ctypes.c_size_t(size), Pointer(torch.cuda.current_stream().cuda_stream))
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return size / min(times) / 1e9

    pageable = rate()
    begin = time.perf_counter()
    result = Gpu.driver.cuMemHostRegister_v2(Pointer(host.data_ptr()), ctypes.c_size_t(size), 0)
    registering = time.perf_counter() - begin
    registered = rate()
    Gpu.driver.cuMemHostUnregister(Pointer(host.data_ptr()))
    return {"pageable_gb_s": pageable, "registered_gb_s": registered, "register_result": result,
            "register_ms_per_64_mib": registering * 1e3}


def launch_cost():
    """Microseconds of host time of a small product through torch."""
    small = torch.zeros(32, 32, device="cuda")
    for _ in range(20):
        torch.mm(small, small, out=small)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(300):
        torch.mm(small, small, out=small)
    of_product = (time.perf_counter() - begin) / 300
    torch.cuda.synchronize()
    return of_product * 1e6


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    results = {"card": torch.cuda.get_device_name(), "commit": sys.argv[3], "torch": torch.__version__,
               "checks": [], "steps": [], "variants": [], "operations": [], "sizes": []}

    def save():
        out.joinpath("kernels.json").write_text(json.dumps(results, indent=1, ensure_ascii=False))

    def attempt(what, work):
        if time.time() - STARTED > BUDGET:
            print("no time left for", what, flush=True)
            return None
        try:
            return work()
        except Exception as error:  # One failure must not end the lease.
            print(what, "failed:", repr(error)[:600], flush=True)
            return None
        finally:
            gc.collect()
            torch.cuda.empty_cache()

    def shown(result):
        keys = [key for key in result if key != "registers"]
        rounded = {key: float(f"{result[key]:.4g}") if isinstance(result[key], float) else result[key] for key in keys}
        print(f"{time.time() - STARTED:.0f} s", rounded, flush=True)

    sets = {name: dict(np.load(folder / f"{name}.npz")) for name in ("piece", "half-ka-v2-hm", "sfnnv16")}
    devices = {}

    def device_of(shape, more=()):
        key = (*shape.macros().items(), *more)
        if key not in devices:
            begin = time.time()
            devices[key] = Gpu(shape, more)
            print(f"compiled in {time.time() - begin:.1f} s, {len(devices[key].code)} bytes", flush=True)
        return devices[key]

    results["copies"] = attempt("copies", lambda: (Gpu(NETWORKS["piece 256→1"][1]), host_copies())[1])
    results["product_launch_us"] = attempt("launches", launch_cost)
    print(results["copies"], results["product_launch_us"], flush=True)
    def keep(group, what, work):
        found = attempt(what, work)
        if found:
            results[group].append(found)
            shown(found)

    # First the step itself: correctness and times of every network.
    for name, (set_name, shape) in NETWORKS.items():
        device, data = device_of(shape), sets[set_name]
        way = {"way": "product" if shape.features < 1600 else "sorted"}
        for tf32 in (False, True):
            keep("checks", f"check of {name}", lambda: {"network": name, "tf32": tf32, **way,
                                                        **check(name, shape, data, way, device, tf32)})
            for size in (16384, 65536, 4096):
                keep("steps", f"{name} {size}", lambda: measure(name, shape, data, size, way, device, tf32=tf32))
            keep("operations", f"operations of {name}", lambda: operations(name, shape, data, 16384, way, device, tf32))
        save()
    # Variants at 16,384.
    for name, (set_name, shape) in NETWORKS.items():
        device, data = device_of(shape), sets[set_name]
        way = {"way": "product" if shape.features < 1600 else "sorted"}
        half = dataclasses.replace(shape, half_rows=True)
        keep("variants", "half", lambda: measure(name, half, data, 16384, way, device_of(half)))
        for options in ({}, {"slice": 256}, {"slice": 32}, {"part_size": 64}, {"threads": 128}):
            options = {"way": "sorted", **options}
            keep("variants", f"{name} {options}", lambda: measure(name, shape, data, 16384, options, device))
        if name in ("half-ka-v2-hm 256→32→1", "stockfish-15.1"):
            doubled = dataclasses.replace(shape, features=shape.features + VIRTUAL)
            keep("variants", "virtual indices", lambda: {"virtual_indices": True, **measure(
                "virtual indices, " + name, doubled, with_virtual_indices(shape, data), 16384, {}, device)})
            scalar = device_of(shape, ("-DSCALAR_ATOMICS=1",))
            keep("variants", "scalar atomics",
                 lambda: {"scalar_atomics": True, **measure(name, shape, data, 16384, {}, scalar)})
        save()
    torch.backends.cuda.matmul.allow_tf32 = False
    for l1 in (256, 1024):
        for copies in (1, 2, 4, 8, 16):
            keep("sizes", f"{768 * copies} features, {l1}",
                 lambda: by_size(sets["piece"], copies, l1, device_of))
        keep("sizes", "products", lambda: products(768, l1))
    for name in ("piece 256→32→1", "half-ka-v2-hm 256→32→1"):
        set_name, shape = NETWORKS[name]
        half = dataclasses.replace(shape, half_rows=True)
        for label, chosen, way in [("f32", shape, {}), ("f16 rows", half, {}),
                                   ("product", shape, {"way": "product" if shape.features < 8000 else "sorted"})]:
            found = attempt("losses", lambda: losses_over(name, chosen, sets[set_name], way, device_of(chosen)))
            print(name, label, "losses of the first and last 20 steps:", found, flush=True)
            results.setdefault("losses", []).append({"network": name, "way": label, "losses": found})
    results["product_fallbacks"] = len(FALLBACKS)
    save()


if __name__ == "__main__":
    main()
