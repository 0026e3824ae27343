"""Training steps by the kernels of src/bin/fsbench-tch/kernels, on the CPU (compiled as C++, with numpy) or on a GPU
(compiled by NVRTC, with torch), for check.py and bench.py beside this file."""

import ctypes
import dataclasses
import glob
import os
import pathlib
import subprocess

import numpy as np

KERNELS = pathlib.Path(__file__).resolve().parent.parent.parent / "src/bin/fsbench-tch/kernels"
ACTIVATIONS = ["relu", "crelu", "screlu", "pairwise", "dual"]
Pointer = ctypes.c_void_p


def padded(size, multiple=4):
    return -(-size // multiple) * multiple


@dataclasses.dataclass
class Shape:
    """As the library's, with the scales of products."""

    features: int
    l1: int
    hidden: tuple = ()
    activation: str = "crelu"
    hidden_activation: str = "crelu"
    skip: bool = False
    skip_difference: bool = False
    concatenated: bool = False
    psqt: bool = False
    buckets: int = 1
    rule: int = 0
    narrow: int = 0
    sum_scale: float = 127 / 128
    product_scale: float = 127 / 128
    half_rows: bool = False

    @property
    def stride(self):
        return padded(self.l1 + (self.buckets if self.psqt else 0))

    @property
    def width(self):
        return self.l1 // 2 if self.activation == "pairwise" else self.l1

    @property
    def out_stride(self):
        return padded(2 * self.width + 1, 8)

    @property
    def sums_stride(self):
        return 8 * (-(-self.width // 4))

    @property
    def outputs_1(self):
        return self.hidden[0] + self.skip if self.hidden else 1

    def activation_of(self, index):
        if index == 0 or self.hidden_activation in ("relu", "screlu") or self.concatenated:
            return self.hidden_activation
        return "crelu"

    def width_of(self, index):
        """Activations of a hidden layer."""
        return self.hidden[index] * (2 if self.activation_of(index) == "dual" else 1)

    @property
    def output_inputs(self):
        widths = [self.width_of(index) for index in range(len(self.hidden))]
        return (sum(widths) if self.concatenated else widths[-1]) if widths else 0

    @property
    def skips(self):
        if self.skip:
            return self.hidden[0], -1
        return (self.hidden[0] - 2, self.hidden[0] - 1) if self.skip_difference else (-1, -1)

    def layers(self):
        """(outputs of all stacks, inputs, padded inputs with the column of ones) of the dense layers."""
        layers = [(self.buckets * self.outputs_1, 2 * self.width, self.out_stride)]
        if len(self.hidden) > 1:
            layers.append((self.buckets * self.hidden[1], self.width_of(0), padded(self.width_of(0) + 1)))
        if self.hidden:
            layers.append((self.buckets, self.output_inputs, padded(self.output_inputs + 1)))
        return layers

    def macros(self):
        hidden = [*self.hidden, 0, 0]
        activations = [ACTIVATIONS.index(self.activation_of(index)) for index in range(2)]
        return {
            "L1": self.l1, "STRIDE": self.stride, "WIDTH": self.width, "OUT_STRIDE": self.out_stride,
            "ACTIVATION": ACTIVATIONS.index(self.activation), "SUM_SCALE": f"{self.sum_scale:.9e}f",
            "PRODUCT_SCALE": f"{self.product_scale:.9e}f", "PSQT": int(self.psqt), "BUCKETS": self.buckets,
            "BUCKET_RULE": self.rule, "HIDDEN": len(self.hidden), "H1": hidden[0], "H2": hidden[1],
            "OUTPUTS_1": self.outputs_1, "HIDDEN_ACTIVATION_1": activations[0], "HIDDEN_ACTIVATION_2": activations[1],
            "SKIP_ADDED": self.skips[0], "SKIP_SUBTRACTED": self.skips[1], "CONCATENATED": int(self.concatenated),
            "HALF_ROWS": int(self.half_rows),
        }


def structure(name, fields):
    return type(name, (ctypes.Structure,), {"_fields_": fields})


StepNumbers = structure("StepNumbers", [("number", ctypes.c_int), ("rate", ctypes.c_float),
    ("correction", ctypes.c_float), ("decay", ctypes.c_float), ("longest", ctypes.c_float),
    ("synchronise", ctypes.c_int)])
Loss = structure("Loss", [("form", ctypes.c_int)] + [(name, ctypes.c_double) for name in
    ("power", "output_scale", "epsilon", "kappa", "centipawns", "weight")])
Lists = structure("Lists", [("indices", Pointer * 2), ("offsets", Pointer * 2)])
Array = structure("Array", [(name, Pointer) for name in
    ("values", "first", "second", "gradient", "slow", "copy", "half_copy", "starts", "list", "listed")]
    + [("sums_gradients", ctypes.c_int), ("rows", ctypes.c_int), ("stride", ctypes.c_int), ("limit", ctypes.c_float),
       ("narrow", ctypes.c_float), ("narrow_rows", ctypes.c_int), ("narrow_columns", ctypes.c_int),
       ("bias_column", ctypes.c_int), ("decays", ctypes.c_int), ("grid", ctypes.c_double)])
Arrays = structure("Arrays", [("number", ctypes.c_int), ("each", Array * 6)])
Head = structure("Head", [("z1", Pointer), ("weights_2", Pointer), ("weights_3", Pointer), ("table", Pointer),
    ("lists", Lists)] + [(name, Pointer) for name in ("pieces", "gradients_1", "inputs_2", "inputs_3", "gradients_2",
    "gradients_3", "output_gradients", "losses", "preferred")])
STATE = np.dtype([("sums", "f8", (2, 3)), ("squares", "f8"), ("diverged", "i4"), ("padding", "i4"),
                  ("target", "u8")])


def packed(arguments):
    """Pointers to the arguments, as a launch takes them, and what must outlive it."""
    kept = [Pointer(argument) if argument is None else argument for argument in arguments]
    return (Pointer * len(kept))(*(ctypes.addressof(argument) for argument in kept)), kept


class Emulated:
    """The kernels as C++, on numpy arrays."""

    multiprocessors = 1

    def __init__(self, shape, folder, compiler="c++"):
        flags = [f"-D{name}={value}" for name, value in shape.macros().items()]
        file = pathlib.Path(folder) / f"kernels-{abs(hash(tuple(flags))):x}.so"
        subprocess.run([compiler, "-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined",
                        "-shared", "-fPIC", "-Wno-unknown-pragmas", *flags, "-x", "c++", KERNELS / "emulate.h",
                        "-o", file], check=True)
        self.library = ctypes.CDLL(str(file))
        self.library.launch.restype = ctypes.c_bool

    def zeros(self, *size, dtype="f4"):
        # Aligned to 16 bytes, with room behind that shows what is written out of bounds.
        count = int(np.prod(size)) * np.dtype(dtype).itemsize
        memory = np.zeros(count + 32, "u1")
        start = -memory.ctypes.data % 16
        return memory[start:start + count].view(dtype).reshape(size)

    def upload(self, values):
        array = self.zeros(*values.shape, dtype=values.dtype)
        array[...] = values
        return array

    def clear(self, array):
        array[...] = 0

    def pointer(self, array):
        return None if array is None else array.ctypes.data

    def launch(self, name, grid, block, *arguments):
        pointers, _kept = packed(arguments)
        found = self.library.launch(name.encode(), (ctypes.c_uint * 2)(*grid), (ctypes.c_uint * 2)(*block), pointers)
        assert found, f"no kernel {name}"

    def product(self, a, b, out):
        """out = a · bᵀ"""
        np.matmul(a, b.T, out=out)

    def plain_product(self, a, b, out):
        """out = a · b"""
        np.matmul(a, b, out=out)

    def add_product(self, a, b, out):
        """out += aᵀ · b"""
        out += a.T @ b

    def add_bfloat_product(self, a, b, out):
        """out += aᵀ · b of numbers in bfloat16."""
        floats = [(x.astype("u4") << 16).view("f4") for x in (a, b)]
        out += floats[0].T @ floats[1]


def find_nvrtc():
    """The library of NVRTC, from the package nvidia-cuda-nvrtc or the one that torch brings."""
    import importlib.util
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations if found else []:
        libraries = sorted(glob.glob(f"{folder}/**/libnvrtc.so.*", recursive=True))
        libraries = [name for name in libraries if "alt" not in os.path.basename(name)]
        if libraries:
            return ctypes.CDLL(libraries[0])
    return None


def compile_for_gpu(nvrtc, architecture, macros, more=()):
    """The machine code for an architecture such as sm_90."""
    sources = {name: (KERNELS / name).read_bytes() for name in ("kernels.cu", "shape.h")}
    program, size = Pointer(), ctypes.c_size_t()
    headers, names = (ctypes.c_char_p * 1)(sources["shape.h"]), (ctypes.c_char_p * 1)(b"shape.h")
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), sources["kernels.cu"], b"kernels.cu", 1, headers, names)
    flags = [f"--gpu-architecture={architecture}", "--std=c++17", *(f"-D{k}={v}" for k, v in macros.items()), *more]
    options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    result = nvrtc.nvrtcCompileProgram(program, len(flags), options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if result != 0:
        raise RuntimeError(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw, log.value.decode()


class Batch:
    """One batch on a device: lists of both sides, numbers of pieces, and targets, or none for pqr."""

    def __init__(self, device, offsets, indices, pieces, targets):
        self.positions = len(pieces)
        self.active = int(offsets[0][-1] + offsets[1][-1])
        self.kept = [device.upload(np.asarray(x, "i4")) for x in (*indices, *offsets)]
        pointers = [device.pointer(x) for x in self.kept]
        self.lists = Lists((Pointer * 2)(*pointers[:2]), (Pointer * 2)(*pointers[2:]))
        self.pieces = device.upload(np.asarray(pieces, "u1"))
        self.targets = None if targets is None else device.upload(np.asarray(targets, "f4"))
        self.each = 3 if targets is None else 1
        self.samples = self.positions // self.each


class Trainer:
    """A network with its optimiser's state on a device."""

    def __init__(self, device, shape, table, biases, layers, virtual=None, slow=False, limits=None, way="sorted",
                 lanes=None, threads=256, part_size=32, slice=16):
        """`table`: [features, stride]; `layers`: [outputs, padded inputs] each, biases in the column after the inputs;
        `virtual`: (starts, inputs, number of virtual inputs); `way`: of the table's gradient, sorted or product."""
        self.device, self.shape, self.way, self.lanes, self.threads = device, shape, way, lanes, threads
        self.part_size, self.slice = part_size, slice
        limits = {"table": 2.0, "narrow": 0.5, "layer": 1.9, "grid": 64.0, **(limits or {})}
        self.columns = padded(shape.features + 1, 8)
        self.state = device.zeros(1, dtype=STATE)
        self.numbers = numbers_of("adam", 1, 1e-3)
        self.arrays = {}
        names = ["table", "biases"] + [f"layer {n}" for n in range(len(layers))]
        for name, values in zip(names, [table, biases.reshape(1, -1), *layers]):
            self.arrays[name] = self.new_array(values, slow)
        gradient = device.zeros(self.columns, shape.stride)
        self.arrays["table"]["gradient"] = gradient
        self.arrays["biases"]["gradient"] = gradient[shape.features:shape.features + 1]
        if virtual is not None:
            starts, inputs, number = virtual
            self.arrays["virtual"] = self.new_array(np.zeros((number, shape.stride), "f4"), slow)
            order = np.argsort(inputs, kind="stable")
            owners = np.repeat(np.arange(shape.features), np.diff(starts))[order]
            by_input = np.searchsorted(np.asarray(inputs)[order], np.arange(number + 1))
            self.inputs_of = [device.upload(np.asarray(x, "i4")) for x in (starts, inputs)]
            self.owners_of = [device.upload(np.asarray(x, "i4")) for x in (by_input, owners)]
        self.limits, self.virtual = limits, virtual
        self.sizes = shape.layers()
        merged = virtual is not None
        table = self.arrays["table"]
        table["copy"] = device.zeros(shape.features, shape.stride) if merged and not shape.half_rows else None
        table["half"] = device.zeros(shape.features, shape.stride, dtype="u2") if shape.half_rows else None
        for number in range(len(layers)):
            self.arrays[f"layer {number}"]["copy"] = device.zeros(*layers[number].shape)
        self.buffers = {}
        # The first launch of `update`, then the second.
        self.first_arrays = [name for name in self.arrays if name != "table"]
        for name in self.arrays:
            array = self.array(name)
            if array.copy or array.half_copy:
                fours = array.rows * array.stride // 4
                device.launch("copy_parameters", (-(-fours // 256), 1), (256, 1), array)

    def new_array(self, values, slow):
        device = self.device
        new = lambda: device.zeros(*values.shape)
        return {"values": device.upload(values), "first": new(), "second": new(), "gradient": new(),
                "slow": device.upload(values) if slow else None, "copy": None, "half": None}

    def array(self, name):
        pointer, array, limits, shape = self.device.pointer, self.arrays[name], self.limits, self.shape
        fields = {key: pointer(array[key]) for key in ("values", "first", "second", "gradient", "slow", "copy")}
        rows, stride = array["values"].shape
        ft = dict(limit=limits["table"], narrow=limits["narrow"], bias_column=-1, decays=1)
        if name == "table":
            ft.update(narrow_rows=shape.narrow, narrow_columns=shape.l1)
            if self.virtual is not None:
                starts, inputs = self.inputs_of
                ft.update(starts=pointer(starts), list=pointer(inputs),
                          listed=pointer(self.arrays["virtual"]["values"]))
        elif name == "virtual":
            starts, owners = self.owners_of
            ft.update(starts=pointer(starts), list=pointer(owners), listed=pointer(self.arrays["table"]["gradient"]),
                      sums_gradients=1)
        elif name == "biases":
            ft.update(decays=0)
        else:
            ft.update(limit=limits["layer"], grid=limits["grid"], bias_column=self.sizes[int(name[6:])][1])
        return Array(**fields, half_copy=pointer(array["half"]), rows=rows, stride=stride, **ft)

    def arrays_of(self, names):
        return Arrays(len(names), (Array * 6)(*(self.array(name) for name in names)))

    def buffer(self, name, *size, dtype="f4"):
        key = name, size
        if key not in self.buffers:
            self.buffers[key] = self.device.zeros(*size, dtype=dtype)
        return self.buffers[key]

    def block(self):
        """Threads over fours of columns and over positions."""
        fours = -(-self.shape.width // 4)
        across = min(padded(fours, 32), self.threads) if fours > 16 else fours
        return across, max(1, self.threads // across)

    def sliced(self, fours):
        """Threads over fours of a slice of columns and over rows, and how many slices there are."""
        across = min(fours, self.slice)
        return across, max(1, self.threads // across), -(-fours // across)

    def rows(self):
        table = self.arrays["table"]
        return next(x for x in (table["half"], table["copy"], table["values"]) if x is not None)

    def forward(self, batch):
        device, shape, n = self.device, self.shape, batch.positions
        pairwise = shape.activation == "pairwise"
        self.sums = self.buffer("sums", 2 * n, shape.sums_stride) if pairwise else None
        self.out = self.buffer("out", n, shape.out_stride)
        across, down, slices = self.sliced(-(-shape.width // 4))
        device.launch("accumulate", (-(-n // down), 2 * slices), (across, down), Pointer(device.pointer(self.rows())),
                      Pointer(device.pointer(self.arrays["biases"]["values"])), batch.lists,
                      Pointer(device.pointer(self.sums)), Pointer(device.pointer(self.out)), ctypes.c_int(n))

    def layer(self, number):
        return self.arrays[f"layer {number}"]

    def dense(self, batch, loss, train=True, losses=None, preferred=None):
        """Products and head; leaves the gradients of the activations in `out_gradients`."""
        device, shape, n, pointer = self.device, self.shape, batch.positions, self.device.pointer
        z1 = self.buffer("z1", n, shape.buckets * shape.outputs_1)
        g1 = self.buffer("g1", n, shape.buckets * shape.outputs_1)
        device.product(self.out, self.layer(0)["copy"], z1)
        head = Head(z1=pointer(z1), table=pointer(self.rows()), lists=batch.lists, pieces=pointer(batch.pieces),
                    losses=pointer(losses), preferred=pointer(preferred))
        last = len(self.sizes) - 1
        if last > 0:
            x3, g3 = self.buffer("x3", n, self.sizes[last][2]), self.buffer("g3", n, shape.buckets)
            head.weights_3, head.inputs_3, head.gradients_3 = map(pointer, (self.layer(last)["copy"], x3, g3))
        if last > 1:
            x2, g2 = self.buffer("x2", n, self.sizes[1][2]), self.buffer("g2", n, self.sizes[1][0])
            head.weights_2, head.inputs_2, head.gradients_2 = map(pointer, (self.layer(1)["copy"], x2, g2))
        self.psqt_gradients = self.buffer("psqt", n)
        head.output_gradients = pointer(self.psqt_gradients)
        head.gradients_1 = pointer(g1) if train else None
        ends = (ctypes.c_int(batch.samples), ctypes.c_int(batch.each // 2), Pointer(pointer(self.state)), self.numbers)
        if train and shape.buckets > 1:
            for gradients in [g1, *([g2] if last > 1 else []), *([g3] if last > 0 else [])]:
                device.clear(gradients)
        grid, block = (-(-batch.samples // 32), 1), (32, 1)
        if batch.each == 1:
            device.launch("head_eval", grid, block, head, Pointer(pointer(batch.targets)), loss, *ends)
        else:
            device.launch("head_pqr", grid, block, head, loss, *ends)
        if not train:
            return
        device.add_product(g1, self.out, self.layer(0)["gradient"])
        if last > 1:
            device.add_product(g2, x2, self.layer(1)["gradient"])
        if last > 0:
            device.add_product(g3, x3, self.layer(last)["gradient"])
        self.out_gradients = self.buffer("out gradients", n, shape.out_stride)
        device.plain_product(g1, self.layer(0)["copy"], self.out_gradients)

    def gradient_arguments(self, batch, sparsity):
        pointer = self.device.pointer
        of = lambda array: Pointer(pointer(array))
        return (of(self.sums), of(self.out), of(self.out_gradients), of(self.psqt_gradients), of(batch.pieces),
                ctypes.c_float(sparsity), ctypes.c_int(batch.positions), of(self.state), self.numbers)

    def backward(self, batch, sparsity=0.0):
        device, shape, n, pointer = self.device, self.shape, batch.positions, self.device.pointer
        across, down = self.block()
        gradient = self.arrays["table"]["gradient"]
        ends = self.gradient_arguments(batch, sparsity)
        # One wave of blocks, as far as they fit: every thread adds to the biases, which is slow.
        lanes = self.lanes or device.multiprocessors * 2048 // (across * 2)
        grid = (max(1, min(-(-n // down), lanes // down)), 2)
        biases = Pointer(pointer(self.arrays["biases"]["gradient"]))
        if self.way == "sorted":
            gradients = self.buffer("gradients", 2 * n, shape.stride)
            device.launch("differentiate", grid, (across, down), Pointer(pointer(gradients)), biases, *ends)
            entries = self.sort(batch)
            fours = shape.stride // 4
            across, down, slices = self.sliced(fours)
            parts = -(-batch.active // self.part_size)
            device.launch("add_sorted", (-(-parts // down), slices), (across, down), Pointer(pointer(gradient)),
                          Pointer(pointer(gradients)), Pointer(pointer(entries)), batch.lists, ctypes.c_int(n),
                          ctypes.c_int(self.part_size))
            return
        active = self.buffer("active", 2 * n, self.columns, dtype="u2")
        high, low = (self.buffer(name, 2 * n, shape.stride, dtype="u2") for name in ("high", "low"))
        eights = self.columns // 8
        wide = min(padded(eights, 32), 256) if eights > 16 else eights
        device.launch("active_rows", (-(-n // max(1, 256 // wide)), 2), (wide, max(1, 256 // wide)),
                      Pointer(pointer(active)), batch.lists, ctypes.c_int(shape.features), ctypes.c_int(self.columns),
                      ctypes.c_int(n))
        device.launch("differentiate_split", (-(-n // down), 2), (across, down), Pointer(pointer(high)),
                      Pointer(pointer(low)), *ends)
        device.add_bfloat_product(active, high, gradient)
        device.add_bfloat_product(active, low, gradient)

    def sort(self, batch):
        """The active features of a batch by feature."""
        device, n, features = self.device, batch.positions, self.shape.features
        most = padded(batch.active, 1 << 16)
        counts = self.buffer("counts", features, dtype="i4")
        sums = self.buffer("count sums", features // 64 + 1, dtype="i4")
        entries = self.buffer("entries", most, 2, dtype="i4")
        device.clear(counts)
        of = lambda array: Pointer(device.pointer(array))
        per_position, per_part = ((-(-n // 128), 2), (128, 1)), ((-(-features // 64 // 128) + 1, 1), (128, 1))
        device.launch("count_features", *per_position, of(counts), batch.lists, ctypes.c_int(n))
        device.launch("sum_counts", *per_part, of(sums), of(counts), ctypes.c_int(features))
        device.launch("start_features", *per_part, of(counts), of(sums), ctypes.c_int(features))
        device.launch("place_features", *per_position, of(entries), of(counts), batch.lists, ctypes.c_int(n))
        return entries

    def squares(self):
        """Adds up the squares of the gradient; needs `squares` of the state at zero."""
        names = [name for name in self.arrays if name != "virtual"]
        self.device.launch("gradient_squares", (256, 1), (256, 1), self.arrays_of(names),
                           Pointer(self.device.pointer(self.state)))

    def update(self):
        device, pointer = self.device, self.device.pointer
        for names in (self.first_arrays, ["table"]):
            arrays = self.arrays_of(names)
            fours = sum(array.rows * array.stride // 4 for array in arrays.each[:arrays.number])
            device.launch("update", (-(-fours // 256), 1), (256, 1), arrays, Pointer(pointer(self.state)),
                          self.numbers)


def numbers_of(optimiser, step, rate, weight_decay=0.01, longest=0.0):
    """The constants of a step, as src/train/adam.rs computes them."""
    beta1, beta2 = float(np.float32(0.9)), float(np.float32(0.999))
    power = beta2**step
    correction, decay = (1 - power) ** -0.5, 1 - rate * weight_decay
    scaled = rate / (1 - beta1**step)
    if optimiser == "adam":
        decay = 1.0
    if optimiser == "ranger":
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * step * power / (1 - power)
        ratio = lambda rho: (rho - 4) * (rho - 2) / rho
        if rho > 5:
            scaled *= (ratio(rho) / ratio(limit)) ** 0.5
        else:
            correction = 0.0
    return StepNumbers(step, scaled, correction, decay, longest, int(optimiser == "ranger" and step % 6 == 0))
