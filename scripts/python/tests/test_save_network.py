"""Networks from arrays: against a forward pass written here, for every kind of shape."""

import re
import subprocess
import sys

import numpy as np
import pytest

import fsbench
from conftest import FENS

L1, FEATURES = 16, 768


def arrays(hidden=(8,), buckets=1, psqt=False, skip=False, pairwise=False, dual=False, seed=1):
    """Random weights of a network on the set piece, as a training leaves them: activations spread over [0, 1]."""
    draw = np.random.default_rng(seed)
    uniform = lambda *sizes, bound: draw.uniform(-bound, bound, sizes).astype(np.float32)
    weights = {"ft.weight": uniform(FEATURES, L1, bound=0.15), "ft.bias": uniform(L1, bound=0.5)}
    if psqt:
        weights["psqt.weight"] = uniform(FEATURES, buckets, bound=0.05)
    for bucket in range(buckets):
        inputs = L1 if pairwise else 2 * L1
        for number, outputs in enumerate((*hidden, 1)):
            name = f"layers.{number}" if buckets == 1 else f"stacks.{bucket}.layers.{number}"
            more = skip and number == 0
            weights[f"{name}.weight"] = uniform(outputs + more, inputs, bound=inputs**-0.5)
            weights[f"{name}.bias"] = uniform(outputs + more, bound=0.3)
            inputs = outputs * (2 if dual and number == 0 else 1)
    return weights


def evaluation(weights, batch, position, bucket=None, pairwise=False, screlu=False, dual=False, skip=False, products=127 / 128):
    """The float output of the encoded position, times 600."""
    clip = lambda values: np.clip(values, 0, 1)
    prefix = "" if bucket is None else f"stacks.{bucket}."
    layers = sum(name.startswith(f"{prefix}layers.") and name.endswith("weight") for name in weights)
    values, psqt = [], []
    for side in ("stm", "nstm"):
        active = batch[f"{side}_indices"][slice(*batch[f"{side}_offsets"][position : position + 2])]
        sums = clip(weights["ft.weight"][active].sum(0) + weights["ft.bias"])
        if pairwise:
            sums = sums[: L1 // 2] * sums[L1 // 2 :] * products
        values.append(sums**2 * products if screlu else sums)
        psqt.append(weights["psqt.weight"][active, bucket or 0].sum() if "psqt.weight" in weights else 0)
    values, added = np.concatenate(values), 0
    for number in range(layers):
        name = f"{prefix}layers.{number}"
        values = weights[f"{name}.weight"] @ values + weights[f"{name}.bias"]
        if number == layers - 1:
            break
        if skip and number == 0:
            values, added = values[:-1], values[-1]
        squares = np.minimum(values**2 * products, 1) if dual and number == 0 else []
        values = np.concatenate([squares, clip(values)])
    return 600 * (values[0] + added + (psqt[0] - psqt[1]) / 2)


SHAPES = {
    "one hidden layer": ({}, {}),
    "two hidden layers": ({"hidden": (16, 8)}, {}),
    "no hidden layer": ({"hidden": ()}, {}),
    "screlu": ({}, {"activation": "screlu"}),
    "pairwise": ({"pairwise": True}, {"activation": "pairwise"}),
    "dual": ({"dual": True}, {"hidden_activation": "dual"}),
    "skip": ({"skip": True}, {"skip": True}),
    "buckets and psqt": ({"buckets": 8, "psqt": True}, {}),
    "buckets of four": ({"buckets": 4}, {"bucket_rule": "cpw"}),
    "stockfish": (
        {"hidden": (15, 32), "buckets": 8, "psqt": True, "skip": True, "pairwise": True, "dual": True},
        {"activation": "pairwise", "hidden_activation": "dual", "skip": True},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_integers_follow_the_arrays(tmp_path, shape):
    kind, options = SHAPES[shape]
    weights = arrays(**kind)
    found = fsbench.save_network(tmp_path / "net", "piece", weights, **options)
    assert found["scheme"] == "stockfish" and found["positions"] > 3000 and found["accumulator_overflows"] == 0
    assert 0 < found["mean"] <= found["p99"] <= found["max"] < 0.1 and found["within_tolerance"] > 0.95
    network = fsbench.Network(tmp_path / "net")
    assert network.shape == found["shape"] and network.features.num_features == FEATURES
    batch = network.features.encode_many(FENS)
    pieces = [sum(letter.isalpha() for letter in fen.split()[0]) for fen in FENS]
    buckets = kind.get("buckets", 1)
    of_pieces = lambda count: (count - 1) // 4 if options.get("bucket_rule") is None else (count - 2) // 8
    expected = [
        evaluation(
            weights, batch, number, None if buckets == 1 else min(of_pieces(count), buckets - 1),
            pairwise=kind.get("pairwise", False), screlu=options.get("activation") == "screlu",
            dual=kind.get("dual", False), skip=kind.get("skip", False),
        )
        for number, count in enumerate(pieces)
    ]
    assert np.abs(network.evaluate(FENS) - np.array(expected)).max() < 40
    assert np.abs(expected).max() > 40


def test_both_files_of_the_folder_give_the_same_scores(tmp_path, program):
    fsbench.save_network(tmp_path / "net", "piece", arrays(), score_unit="internal:208")
    scores = fsbench.Network(tmp_path / "net").evaluate(FENS)
    for name in ["best.safetensors", "network.safetensors"]:
        path = tmp_path / "net" / name
        assert (fsbench.Network(path).evaluate(FENS) == scores).all()
        assert [program.json("eval", "--net", path, "--fen", fen)["score_cp"] for fen in FENS] == scores.tolist()


def test_the_error_is_what_the_program_measures(tmp_path, program):
    games = tmp_path / "games.pgn"
    games.write_text("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 1-0\n")
    fens, board = [], pytest.importorskip("chess").Board()
    for move in "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7".split():
        fens.append(board.fen())
        board.push_san(move)
    found = fsbench.save_network(tmp_path / "net", "piece", arrays(), positions=fens)
    files = ["--net", tmp_path / "net" / "network.safetensors", "--checkpoint", tmp_path / "net" / "best.safetensors"]
    record = program.json("measure", "error", *files, "--data", games)
    names = ["positions", "mean", "p99", "max", "within_tolerance", "tolerance", "accumulator_overflows"]
    for name in names:
        assert found[name] == pytest.approx(record[name], rel=1e-6), name


def test_score_units_and_scales(tmp_path):
    weights = arrays(skip=True, psqt=True)
    save = lambda name, weights, **options: fsbench.save_network(tmp_path / name, "piece", weights, skip=True, **options)
    save("cp", weights)
    save("internal", weights, score_unit="internal:200")
    # Twice the weights of the output, with half the score per output: the same network.
    twice = {name: 2 * value if name.startswith(("layers.1", "psqt")) else value.copy() for name, value in weights.items()}
    for name in ("layers.0.weight", "layers.0.bias"):
        twice[name][-1] *= 2
    save("scaled", twice, score_per_output=300)
    cp, internal, scaled = (fsbench.Network(tmp_path / name).evaluate(FENS) for name in ("cp", "internal", "scaled"))
    assert np.abs(internal - cp / 2).max() <= 1 and (cp == scaled).all()
    columns = {"ft.weight": np.concatenate([weights["ft.weight"], weights["psqt.weight"]], axis=1)}
    save("columns", {name: value for name, value in {**weights, **columns}.items() if name != "psqt.weight"})
    assert (fsbench.Network(tmp_path / "columns").evaluate(FENS) == cp).all()


def test_factors_are_merged(tmp_path):
    features = fsbench.FeatureSet('features = "file(K) * square(P) for P in pieces"\nfactor = "square(P)"')
    factors, draw = features.factors(), np.random.default_rng(2)
    weights = {**arrays(), "ft.weight": draw.uniform(-0.1, 0.1, (features.num_features, L1))}
    virtual = draw.uniform(-0.1, 0.1, (factors.num_inputs, L1))
    merged = weights["ft.weight"] + np.add.reduceat(virtual[factors.inputs], factors.offsets[:-1])
    fsbench.save_network(tmp_path / "factors", features, {**weights, "factor.weight": virtual})
    fsbench.save_network(tmp_path / "merged", features, {**weights, "ft.weight": merged})
    one, other = (fsbench.Network(tmp_path / name).evaluate(FENS) for name in ("factors", "merged"))
    assert np.abs(one - other).max() <= 1 and np.abs(one).max() > 10
    with pytest.raises(fsbench.RequestError, match="has no factor"):
        fsbench.save_network(tmp_path / "wrong", "piece", {**arrays(), "factor.weight": virtual})
    with pytest.raises(fsbench.RequestError, match=r"factor.weight\"\] has the shape \[64, 15\], not \[64, 16\]"):
        fsbench.save_network(tmp_path / "wrong", features, {**weights, "factor.weight": virtual[:, 1:]})


def test_a_file_of_arrays(tmp_path):
    np.savez(tmp_path / "weights.npz", **arrays())
    fsbench.save_network(tmp_path / "net", "piece", np.load(tmp_path / "weights.npz"))
    assert fsbench.Network(tmp_path / "net").shape == "(768 → 16) × 2 → 8 → 1"
    with pytest.raises(fsbench.RequestError, match="net has one network and no last epoch; leave last out"):
        fsbench.Network(tmp_path / "net", last=True)


def test_accumulators_that_overflow_are_warned_of(tmp_path):
    weights = {**arrays(), "ft.weight": np.full((FEATURES, L1), 50)}
    with pytest.warns(UserWarning, match="an accumulator leaves sixteen bits in .* where engines will err"):
        found = fsbench.save_network(tmp_path / "net", "piece", weights)
    assert found["accumulator_overflows"] > 3000


def test_ctrl_c_is_heard_in_the_first_call(tmp_path):
    """While arrays are converted. numpy's interface is loaded before, since it would lose the interrupt."""
    code = f"""
import signal, numpy as np, fsbench
signal.signal(signal.SIGALRM, signal.default_int_handler)
weights = {{"ft.weight": np.zeros((22528, 512)), "ft.bias": np.zeros(512)}}
weights |= {{"layers.0.weight": np.zeros((1, 1024)), "layers.0.bias": np.zeros(1)}}
signal.setitimer(signal.ITIMER_REAL, 0.001)
fsbench.save_network({str(tmp_path / "net")!r}, "half-ka-v2-hm", weights)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0 and run.stderr.rstrip().endswith("KeyboardInterrupt"), run.stderr


def test_tensors_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    weights = arrays()
    half = {name: torch.from_numpy(value).to(torch.bfloat16) for name, value in weights.items()}
    fsbench.save_network(tmp_path / "half", "piece", half)
    fsbench.save_network(tmp_path / "arrays", "piece", weights)
    tensors = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()}
    fsbench.save_network(tmp_path / "tensors", "piece", tensors)
    one, other = (fsbench.Network(tmp_path / name).evaluate(FENS) for name in ("arrays", "tensors"))
    assert (one == other).all()


def test_schemes_hold_what_they_say(tmp_path):
    schemes = {scheme["name"]: scheme for scheme in fsbench.schemes()}
    assert set(schemes) == {"stockfish", "stockfish-18", "stockfish-19", "simple"}
    limits = schemes["stockfish"]
    for name, limit in [("ft.weight", limits["ft"]), ("layers.0.weight", limits["hidden"][0]), ("layers.1.weight", limits["output"])]:
        weights = arrays()
        weights[name].flat[0] = limit
        fsbench.save_network(tmp_path / "net", "piece", weights, force=True)
        weights[name].flat[0] = 1.02 * limit
        with pytest.raises(fsbench.Error, match="outside ±.* the range of scheme `stockfish`"):
            fsbench.save_network(tmp_path / "net", "piece", weights, force=True)


def test_mistakes(tmp_path):
    def refused(message, weights=None, kind=fsbench.RequestError, features="piece", **options):
        with pytest.raises(kind, match=message):
            fsbench.save_network(tmp_path / "net", features, arrays() if weights is None else weights, **options)
        assert not list(tmp_path.glob("net/*.safetensors"))

    without = lambda name: {other: value for other, value in arrays().items() if other != name}
    for name in arrays():
        refused(f"weights has no {re.escape(name)}, which the network needs; help", without(name))
    refused("has no weights hidden.weight", {**arrays(), "hidden.weight": np.zeros(3)})
    refused(r"ft.weight\"\] has the shape \[768, 16\], not \[22528, 16\]", features="half-ka-v2-hm")
    refused(r"layers.0.weight\"\] has the shape \[8, 31\], not \[8, 32\]", {**arrays(), "layers.0.weight": np.zeros((8, 31))})
    refused(r"weights\[\"ft.bias\"\] is NaN at 0: training has diverged", {**arrays(), "ft.bias": np.full(L1, np.nan)})
    refused(r"not an array of real numbers", {**arrays(), "ft.bias": np.ones(L1, complex)}, kind=TypeError)
    refused(r"weights\[\"ft.bias\"\] is not an array of real numbers", {**arrays(), "ft.bias": "many"}, kind=TypeError)
    refused("weights is a dict from names to arrays, found list", [1], kind=TypeError)
    refused("weights has the name 1, which is not a string", {1: np.zeros(2)}, kind=TypeError)
    refused(r"ft.weight\"\] has the shape \[16, 768\], not \[768, 16\]", {**arrays(), "ft.weight": arrays()["ft.weight"].T})
    refused('activation is "relu", .* not \'gelu\'', activation="gelu")
    refused("skip is True or False, not 1", skip=1)
    refused("narrow is a whole number from 0 to 4294967295, not -1", narrow=-1)
    refused("bucket_rule has no effect: weights has one bucket", bucket_rule="cpw")
    direct = {**without("layers.1.weight"), "layers.0.weight": np.zeros((1, 32)), "layers.0.bias": np.zeros(1)}
    del direct["layers.1.bias"]
    refused("hidden_activation has no effect: weights has no hidden layer", direct, hidden_activation="dual")
    gap = {name.replace("layers.1", "layers.2"): value for name, value in arrays().items()}
    refused("weights has no layers.1.weight, which the network needs", gap)
    refused("save_network has no option buckets", kind=TypeError, buckets=8)
    refused("there is no scheme large; known are stockfish", scheme="large")
    refused("multiplies neurons, so it needs the activation pairwise or screlu", scheme="stockfish-18")
    refused("score_per_output is the score of output 1.0", score_per_output=-1.0)
    refused("score_unit cannot be pawns: ", score_unit="pawns")
    refused("positions is empty", positions=[])
    refused('position 1: "no" is not a FEN', positions=[FENS[0], "no"])
    refused("there is no feature set `nothing-like`", features="nothing-like")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(fsbench.RequestError, match="holds files that are no network's .notes.txt."):
        fsbench.save_network(tmp_path / "other", "piece", arrays(), force=True)
    fsbench.save_network(tmp_path / "net", "piece", arrays())
    with pytest.raises(fsbench.RequestError, match="holds a network or a run already .* or force=True to replace it"):
        fsbench.save_network(tmp_path / "net", "piece", arrays())
