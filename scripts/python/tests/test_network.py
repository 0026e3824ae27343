"""Networks: against an evaluation written here, against the program and against Stockfish's own file."""

import pickle
import shutil
import subprocess

import numpy as np
import pytest

import fsbench
from conftest import FENS, START

QA, QB, SCALE, L1 = 255, 64, 400, 16


@pytest.fixture(scope="module")
def network(program, tmp_path_factory):
    """A network of random weights: bullet's raw file, converted, with its arrays."""
    folder = tmp_path_factory.mktemp("network")
    draw = np.random.default_rng(1)
    weights = {
        "ft": draw.integers(-60, 60, (768, L1)),
        "ft_bias": draw.integers(-20, 120, L1),
        "out": draw.integers(-60, 60, 2 * L1),
        "out_bias": draw.integers(-500, 500, 1),
    }
    raw = b"".join(array.astype("<i2").tobytes() for array in weights.values())
    (folder / "raw.bin").write_bytes(raw + (b"bullet" * 11)[: -len(raw) % 64])
    program("net", "convert", folder / "raw.bin", folder / "net.safetensors", "--bullet", "piece", "--activation", "screlu")
    return folder / "net.safetensors", weights


def test_scores_equal_an_evaluation_in_python(network):
    path, weights = network
    net = fsbench.Network(path)
    batch = net.features.encode_many(FENS)
    scores = net.evaluate(FENS, internal=True)
    assert scores.dtype == np.int32
    for number in range(len(FENS)):
        inputs = []
        for side in ("stm", "nstm"):
            active = batch[f"{side}_indices"][slice(*batch[f"{side}_offsets"][number : number + 2])]
            inputs.append(np.clip(weights["ft"][active].sum(0) + weights["ft_bias"], 0, QA) ** 2)
        total = int(np.concatenate(inputs) @ weights["out"])
        expected = (total / QA + int(weights["out_bias"][0])) * SCALE / (QA * QB)
        assert abs(scores[number] - expected) <= 2


def test_scores_equal_the_programs(network, program):
    path, _ = network
    net = fsbench.Network(path)
    lines = [program.json("eval", "--net", path, "--fen", fen) for fen in FENS]
    assert net.evaluate(FENS).tolist() == [line["score_cp"] for line in lines]
    assert net.evaluate(iter(FENS), internal=True).tolist() == [line["score_internal"] for line in lines]
    assert (net.format, net.architecture, net.features.num_features) == ("fsbench", None, 768)
    assert "16" in net.shape and pickle.loads(pickle.dumps(net)).evaluate([START]) == net.evaluate([START])


def test_a_file_of_stockfish(program, tmp_path):
    stockfish = shutil.which("stockfish") or shutil.which("/usr/games/stockfish")
    if stockfish is None:
        pytest.skip("stockfish is not installed")
    path = tmp_path / "nn.nnue"
    subprocess.run([stockfish, "export_net", path], check=True, stdout=subprocess.DEVNULL)
    if not path.exists():
        pytest.skip("this stockfish does not export its network")
    net = fsbench.Network(path)
    assert net.format == "nnue" and net.architecture.startswith("stockfish-")
    expected = [program.json("eval", "--net", path, "--fen", fen)["score_cp"] for fen in FENS]
    assert net.evaluate(FENS).tolist() == expected


def test_mistakes(network, tmp_path):
    net = fsbench.Network(network[0])
    with pytest.raises(fsbench.RequestError, match="position 1: .* is not a FEN"):
        net.evaluate([START, "startpos"])
    with pytest.raises(TypeError, match="put it into a list"):
        net.evaluate(START)
    with pytest.raises(fsbench.RequestError, match="unknown architecture `sf`; known are"):
        fsbench.Network(network[0], "sf")
    with pytest.raises(fsbench.RequestError, match="cannot read"):
        fsbench.Network(tmp_path / "missing.nnue")
    with pytest.raises(fsbench.RequestError, match="holds no network"):
        fsbench.Network(tmp_path)
