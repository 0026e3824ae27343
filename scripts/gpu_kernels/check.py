"""Checks the kernels of src/bin/fsbench-tch/kernels without a GPU: their steps, computed as C++, against formulas in
double precision whose derivatives are differences; and that NVRTC compiles them. Needs numpy and a C++ compiler, and
for the second part the package nvidia-cuda-nvrtc.

    check.py            all
    check.py NAME…      the cases of these names"""

import ctypes
import sys
import tempfile

import numpy as np

from step import Batch, Emulated, Loss, Pointer, Shape, Trainer, compile_for_gpu, find_nvrtc, numbers_of

CENTIPAWNS = 600.0
EVAL = dict(form=0, power=2.6, output_scale=361.0, epsilon=0.0, kappa=1.0, centipawns=CENTIPAWNS)
EPSILON = {**EVAL, "form": 1, "epsilon": 15.0}
ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100"]

FULL = dict(hidden=(5, 4), activation="pairwise", hidden_activation="dual", skip=True, psqt=True, buckets=8)
CASES = {
    "direct": Shape(23, 12, activation="screlu"),
    "direct odd, buckets": Shape(23, 7, activation="screlu", buckets=4, psqt=True, rule=1),
    "one hidden layer": Shape(40, 16, (8,), activation="screlu"),
    "relu": Shape(40, 13, (6,), activation="relu", hidden_activation="relu"),
    "dual hidden": Shape(31, 8, (7,), hidden_activation="dual", skip=True),
    "two hidden layers": Shape(40, 16, (8, 4)),
    "screlu hidden": Shape(40, 10, (8, 4), hidden_activation="screlu", buckets=3),
    "full": Shape(40, 16, **FULL),
    "full odd": Shape(41, 10, **FULL),
    "full narrow": Shape(41, 2, **FULL),
    "concatenated": Shape(40, 16, **{**FULL, "skip": False}, skip_difference=True, concatenated=True, narrow=7),
    "half rows": Shape(40, 16, **FULL, half_rows=True),
}


def random_batch(rng, shape, samples, pqr):
    positions = samples * (3 if pqr else 1)
    offsets, indices = [], []
    for side in range(2):
        counts = rng.integers(0, 9, positions)
        counts[rng.integers(0, positions, 2)] = 0
        offsets.append(np.concatenate([[0], np.cumsum(counts)]))
        # Repeated features count repeatedly.
        indices.append(rng.integers(0, shape.features, offsets[-1][-1]))
    targets = None if pqr else rng.random(samples)
    return offsets, indices, rng.integers(0, 33, positions), targets


def random_network(rng, shape):
    table = rng.uniform(-0.4, 0.4, (shape.features, shape.stride)).astype("f4")
    table[:, shape.l1 + (shape.buckets if shape.psqt else 0):] = 0
    biases = np.zeros(shape.stride, "f4")
    biases[:shape.l1] = rng.uniform(0, 0.6, shape.l1)
    layers = []
    for outputs, inputs, stride in shape.layers():
        layer = np.zeros((outputs, stride), "f4")
        layer[:, :inputs] = rng.uniform(-1, 1, (outputs, inputs)) * (1.2 / inputs**0.5)
        layer[:, inputs] = rng.uniform(0, 0.3, outputs)
        layers.append(layer)
    return table, biases, layers


def activate(name, x, scale):
    clipped = np.clip(x, 0, 1)
    if name == "relu":
        return np.maximum(x, 0)
    if name == "screlu":
        return clipped**2 * scale
    if name == "pairwise":
        return clipped[:, :x.shape[1] // 2] * clipped[:, x.shape[1] // 2:] * scale
    if name == "dual":
        return np.concatenate([np.minimum(x * x * scale, 1), clipped], 1)
    return clipped


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def outputs_of(shape, table, biases, layers, batch):
    """The outputs in centipawns, and the activations, by formula, in the precision of the arguments."""
    offsets, indices, pieces, _ = batch
    # The scales are floats in the kernels.
    sum_scale, product_scale = float(np.float32(shape.sum_scale)), float(np.float32(shape.product_scale))
    n = len(pieces)
    bucket = (np.maximum(pieces - 1, 0) // 4 if shape.rule == 0
              else np.maximum(pieces - 2, 0) // -(-32 // shape.buckets))
    bucket = np.minimum(bucket, shape.buckets - 1)
    sums = []
    for side in range(2):
        total = np.zeros((n, shape.stride))
        np.add.at(total, np.repeat(np.arange(n), np.diff(offsets[side])), table[indices[side]])
        sums.append(total + biases)
    out = np.concatenate([activate(shape.activation, side[:, :shape.l1], sum_scale) for side in sums], 1)
    at = np.arange(n)

    def layer(number, x):
        outputs, inputs, _ = shape.layers()[number]
        all_stacks = x @ layers[number][:, :inputs].T + layers[number][:, inputs]
        return all_stacks.reshape(n, shape.buckets, outputs // shape.buckets)[at, bucket]

    y = layer(0, out)
    if shape.hidden:
        z = y
        x = activate(shape.activation_of(0), z[:, :shape.hidden[0]], product_scale)
        if len(shape.hidden) > 1:
            second = activate(shape.activation_of(1), layer(1, x), product_scale)
            x = np.concatenate([x, second], 1) if shape.concatenated else second
        y = layer(len(shape.hidden), x)
        added, subtracted = shape.skips
        if added >= 0:
            y = y + z[:, added:added + 1]
        if subtracted >= 0:
            y = y - z[:, subtracted:subtracted + 1]
    y = y[:, 0]
    if shape.psqt:
        y = y + (sums[0] - sums[1])[at, shape.l1 + bucket] / 2
    return y * CENTIPAWNS, out


def losses_of(loss, out, targets):
    if targets is not None and loss["form"] == 0:
        return np.abs(sigmoid(out / loss["output_scale"]) - targets) ** loss["power"]
    if targets is not None:
        return np.maximum(np.abs(out - targets) - loss["epsilon"], 0)
    p, q, r = (2 * sigmoid(out.reshape(-1, 3) / loss["output_scale"]) - 1).T
    return np.log1p(np.exp(q - r)) + loss["kappa"] * (np.log1p(np.exp(-p - q)) + np.log1p(np.exp(p + q)))


def gradients_of(shape, network, batches, sparsity):
    """Derivatives of the minimised loss with respect to every parameter, by differences. `batches`: (batch, loss)."""
    table, biases, layers = network
    arrays = [table, biases, *layers]

    def minimised():
        total = 0.0
        for batch, loss in batches:
            out, activations = outputs_of(shape, table, biases, layers, batch)
            total += loss["weight"] * losses_of(loss, out, batch[3]).sum()
            total += sparsity * activations.sum()
        return total

    gradients = []
    for array in arrays:
        gradient, flat = np.zeros_like(array), array.reshape(-1)
        for index in range(flat.size):
            value, values = flat[index], []
            for change in (1e-6, -1e-6):
                flat[index] = value + change
                values.append(minimised())
            flat[index] = value
            gradient.reshape(-1)[index] = (values[0] - values[1]) / 2e-6
        gradients.append(gradient)
    return gradients


def near(found, expected, tolerance, what):
    found, expected = np.asarray(found, "f8"), np.asarray(expected, "f8")
    size = np.linalg.norm(expected)
    off = np.linalg.norm(found - expected)
    assert np.isfinite(off) and off <= tolerance * size + 1e-12, f"{what}: off by {off} of {size}"
    return off / size if size else 0.0


def on_grid(layers, shape, grid):
    rounded = []
    for layer, (_, inputs, _) in zip(layers, shape.layers()):
        values = layer.astype("f8")
        scaled = values[:, :inputs] * grid
        values[:, :inputs] = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5) / grid
        rounded.append(values)
    return rounded


def check_gradients(name, shape, folder, rng):
    """Outputs, losses and all gradients of a step with two batches, by every way to the table's gradient."""
    device = Emulated(shape, folder)
    table, biases, layers = random_network(rng, shape)
    eval_batch, pqr_batch = random_batch(rng, shape, 9, False), random_batch(rng, shape, 4, True)
    losses = [{**EVAL, "weight": 1 / 9}, {**EVAL, "weight": 0.25 / 4}]
    if name == "relu":
        losses[0] = {**EPSILON, "weight": 1e-3}
        eval_batch = (*eval_batch[:3], eval_batch[3] * 600 - 300)
    sparsity = 0.01
    read = table.astype("f2").astype("f8") if shape.half_rows else table.astype("f8")
    network = read, biases.astype("f8"), on_grid(layers, shape, 64.0)
    batches = [(eval_batch, losses[0]), (pqr_batch, losses[1])]
    expected = gradients_of(shape, network, batches, sparsity)
    worst = {}
    for way in ("sorted", "product"):
        trainer = Trainer(device, shape, table, biases, layers, way=way, lanes=4, part_size=7)
        trainer.numbers = numbers_of("adam", 1, 1e-3)
        for batch, loss in batches:
            batch_here = Batch(device, *batch)
            each = device.zeros(batch_here.samples)
            trainer.forward(batch_here)
            trainer.dense(batch_here, Loss(**loss), losses=each)
            trainer.backward(batch_here, sparsity)
            out, activations = outputs_of(shape, *network, batch)
            near(trainer.out[:, :2 * shape.width], activations, 1e-6, f"{name}: activations")
            by_formula = losses_of(loss, out, batch[3])
            near(each, by_formula, 1e-5, f"{name}: losses")
        state = trainer.state[0]
        near(state["sums"][:, 1], [9, 4], 0, f"{name}: samples")
        near(state["sums"][1, 0], by_formula.sum(), 1e-6, f"{name}: sum of losses")
        near(state["sums"][1, 2], (out.reshape(-1, 3)[:, 2] > out.reshape(-1, 3)[:, 1]).sum(), 0, f"{name}: preferred")
        assert state["diverged"] == 0, name
        found = [trainer.arrays[key]["gradient"] for key in list(trainer.arrays)]
        found[0], found[1] = found[0][:shape.features], found[1][0]
        labels = ["table", "biases", *(f"layer {n}" for n in range(len(layers)))]
        for label, ours, theirs in zip(labels, found, expected):
            if label.startswith("layer"):
                inputs = shape.layers()[int(label[6:])][1]
                ours, theirs = ours[:, :inputs + 1], theirs[:, :inputs + 1]
            real = ours.shape[1] if ours.ndim > 1 else shape.l1
            ours, theirs = ours[..., :real], theirs[..., :real]
            tolerance = 1e-4 if way == "product" and label in ("table", "biases") else 2e-5
            off = near(ours, theirs, tolerance, f"{name}, {way}: gradient of {label}")
            worst[label] = max(worst.get(label, 0), off)
        padding = trainer.arrays["table"]["gradient"][:, shape.l1 + (shape.buckets if shape.psqt else 0):]
        assert not padding.any(), f"{name}: padding"
        # Every neuron's activity.
        counts = [device.zeros(shape.width, dtype="u4") for _ in range(2)]
        device.launch("count_activity", (3, 1), (4, 2), *(Pointer(device.pointer(x)) for x in (*counts, trainer.out)),
                      ctypes.c_float(0.9), ctypes.c_int(len(pqr_batch[2])))
        values = trainer.out[:, :2 * shape.width].reshape(-1, shape.width)
        assert (counts[0] == (values > 0).sum(0)).all() and (counts[1] == (values >= np.float32(0.9)).sum(0)).all()
    return max(worst.values())


def adam_step(p, m, v, slow, g, numbers, limit, decays):
    """By formula, in double precision; β as floats, since 1 − β₂ is off by 1e-5 then."""
    one, beta1, beta2 = np.float32(1), np.float32(0.9), np.float32(0.999)
    m[...] = float(beta1) * m + float(one - beta1) * g
    v[...] = float(beta2) * v + float(one - beta2) * g * g
    change = numbers.rate * m / (np.sqrt(v) * numbers.correction + 1e-8 if numbers.correction else 1)
    p[...] = np.clip(p * (numbers.decay if decays else 1.0) - change, -limit, limit)


def check_optimiser(optimiser, longest, with_factor, folder, rng):
    """Eight steps of random gradients: every array, moment, slow weight and copy."""
    shape = CASES["concatenated"]
    if with_factor:
        shape = Shape(**{**shape.__dict__, "half_rows": with_factor == "half"})
    device = Emulated(shape, folder)
    table, biases, layers = random_network(rng, shape)
    virtual = None
    number = 5
    if with_factor:
        counts = rng.integers(0, 3, shape.features)
        starts = np.concatenate([[0], np.cumsum(counts)])
        virtual = starts, rng.integers(0, number, starts[-1]), number
    limits = {"table": 0.42, "narrow": 0.2, "layer": 0.7, "grid": 64.0}
    trainer = Trainer(device, shape, table, biases, layers, virtual, optimiser == "ranger", limits)
    values = {name: trainer.arrays[name]["values"].astype("f8") for name in trainer.arrays}
    first, second = ({name: np.zeros_like(x) for name, x in values.items()} for _ in range(2))
    slow = {name: x.copy() for name, x in values.items()}
    for step in range(1, 9):
        numbers = numbers_of(optimiser, step, 2e-2, 0.1, longest)
        trainer.numbers = numbers
        gradients = {name: rng.normal(size=x.shape) * (rng.random(x.shape) < 0.7) for name, x in values.items()}
        gradients["table"][rng.integers(0, shape.features, 9)] = 0
        for name, gradient in gradients.items():
            if name != "virtual":
                trainer.arrays[name]["gradient"][:len(gradient)] = gradient
        if with_factor:
            owners = np.repeat(np.arange(shape.features), np.diff(virtual[0]))
            gradients["virtual"] = np.zeros_like(values["virtual"])
            np.add.at(gradients["virtual"], virtual[1], gradients["table"][owners])
        trainer.state["squares"] = 0
        length = np.sqrt(sum((g**2).sum() for name, g in gradients.items() if name != "virtual"))
        trainer.squares()
        near(np.sqrt(trainer.state[0]["squares"]), length, 1e-6, "the gradient's length")
        scale = min(longest / length, 1) if longest else 1.0
        trainer.update()
        for name, p in values.items():
            bias = None if not name.startswith("layer") else shape.layers()[int(name[6:])][1]
            limit = limits["layer"] if name.startswith("layer") else limits["table"]
            before = p.copy()
            moments = first[name], second[name]
            adam_step(p, *moments, slow[name], gradients[name] * scale, numbers, limit, name != "biases")
            if bias is not None:
                numbers_of_biases = numbers.rate * first[name][:, bias] / (
                    np.sqrt(second[name][:, bias]) * numbers.correction + 1e-8 if numbers.correction else 1)
                p[:, bias] = before[:, bias] - numbers_of_biases
            if name == "table" and not with_factor:
                p[:shape.narrow, :shape.l1] = np.clip(p[:shape.narrow, :shape.l1], -limits["narrow"], limits["narrow"])
            if numbers.synchronise:
                slow[name] += 0.5 * (p - slow[name])
                p[...] = slow[name]
            found = trainer.arrays[name]
            what = f"{optimiser}, factor {with_factor}, step {step}: {name}"
            near(found["values"], p, 1e-5, what)
            near(found["first"], first[name], 1e-5, what)
            near(found["second"], second[name], 1e-5, what)
            if optimiser == "ranger":
                near(found["slow"], slow[name], 1e-5, what)
            if name != "virtual":
                assert not found["gradient"].any(), f"{what}: the gradient is not cleared"
        for number_of_layer, (_, inputs, _) in enumerate(shape.layers()):
            copy, plain = (trainer.layer(number_of_layer)[key].astype("f8") for key in ("copy", "values"))
            assert (copy[:, inputs] == plain[:, inputs]).all()
            assert np.abs(copy - plain)[:, :inputs].max() <= 0.5 / 64 + 1e-7 and not (copy[:, :inputs] * 64 % 1).any()
        if with_factor:
            merged = values["table"].copy()
            np.add.at(merged, owners, values["virtual"][virtual[1]])
            merged = np.clip(merged, -limits["table"], limits["table"])
            merged[:shape.narrow, :shape.l1] = np.clip(merged[:shape.narrow, :shape.l1], -0.2, 0.2)
            found = trainer.rows()
            near(found.view("f2") if with_factor == "half" else found, merged, 5e-4 if with_factor == "half" else 1e-5,
                 f"merged rows, step {step}")
    # A number that is not finite: the step is named and nothing changes, but gradients are cleared.
    before = [trainer.arrays[name]["values"].copy() for name in trainer.arrays]
    trainer.state["diverged"] = 9
    trainer.arrays["table"]["gradient"][...] = np.nan
    trainer.update()
    assert all((a == trainer.arrays[name]["values"]).all() for a, name in zip(before, trainer.arrays))
    assert not trainer.arrays["table"]["gradient"][:shape.features].any()


def check_divergence(folder, rng):
    """A loss that is not finite, or a gradient beyond floats, is noted with its step."""
    shape = CASES["full"]
    device = Emulated(shape, folder)
    for what in ("weight", "target", "gradient"):
        table, biases, layers = random_network(rng, shape)
        batch = random_batch(rng, shape, 9, False)
        if what == "weight":
            table[batch[1][0][0], 0] = np.nan
        if what == "target":
            batch[3][4] = np.inf
        for way in ("sorted", "product"):
            trainer = Trainer(device, shape, table, biases, layers, way=way, lanes=4)
            trainer.numbers = numbers_of("adam", 7, 1e-3)
            here = Batch(device, *batch)
            trainer.forward(here)
            trainer.dense(here, Loss(**EVAL, weight=1e300 if what == "gradient" else 1.0))
            trainer.backward(here)
            assert trainer.state[0]["diverged"] == 7, what


def check_bfloat(folder):
    """Rounding to bfloat16, of numbers and what is none, against the next numbers of that format."""
    values = np.concatenate([np.random.default_rng(5).normal(size=20000) * 10.0 ** np.linspace(-30, 30, 20000),
                             [0.0, -0.0, 1.0, 256.0, 255.0, 3.38e38]]).astype("f4")
    # By way of `differentiate_split`, with activations that pass every gradient.
    shape = Shape(3, 4, activation="relu")
    device = Emulated(shape, folder)
    values = values[:len(values) // 8 * 8]
    n = len(values) // 8
    table, biases, layers = random_network(np.random.default_rng(1), shape)
    trainer = Trainer(device, shape, table, biases, layers, way="product")
    offsets = [np.zeros(n + 1)] * 2
    batch = Batch(device, offsets, [np.zeros(0), np.zeros(0)], np.full(n, 9), np.zeros(n))
    trainer.sums, trainer.out = None, trainer.buffer("out", n, shape.out_stride)
    trainer.out[:, :8] = 1.0
    trainer.out_gradients = device.zeros(n, shape.out_stride)
    trainer.out_gradients[:, :8] = values.reshape(n, 8)
    trainer.psqt_gradients = device.zeros(n)
    trainer.backward(batch)
    find = lambda name: next(x for (key, _), x in trainer.buffers.items() if key == name)
    as_floats = lambda x: (x.astype("u4") << 16).view("f4").astype("f8")
    high, low = as_floats(find("high")), as_floats(find("low"))
    expected = trainer.out_gradients[:, :8].reshape(n, 2, 4).transpose(1, 0, 2).reshape(2 * n, 4).astype("f8")
    size = np.abs(expected)
    assert (np.abs(high - expected) <= size * 2.0**-8).all()
    normal = size > 1e-30
    assert (np.abs(high + low - expected)[normal] <= size[normal] * 2.0**-16).all()


def main():
    rng = np.random.default_rng(43)
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in CASES.items():
            if not wanted or name in wanted:
                print(f"{name}: gradients within {check_gradients(name, shape, folder, rng):.1e}", flush=True)
        if not wanted:
            for optimiser, longest, factor in [("adam", 0.0, None), ("adamw", 3.0, None), ("ranger", 0.0, "float"),
                                               ("ranger", 5.0, None), ("adamw", 0.0, "half")]:
                check_optimiser(optimiser, longest, factor, folder, rng)
                print(f"{optimiser}, longest gradient {longest}, factor {factor}: passed", flush=True)
            check_divergence(folder, rng)
            check_bfloat(folder)
            print("divergence, bfloat16: passed", flush=True)
    nvrtc = find_nvrtc()
    if nvrtc is None:
        print("no package nvidia-cuda-nvrtc: not compiled for GPUs")
        return
    for name, shape in CASES.items():
        for architecture in ARCHITECTURES if name == "full" else ["sm_90"]:
            if not wanted or name in wanted:
                code, log = compile_for_gpu(nvrtc, architecture, shape.macros())
                print(f"{name}: {len(code)} bytes for {architecture}", log.strip(), flush=True)


if __name__ == "__main__":
    main()
