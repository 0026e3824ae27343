"""The example trainer learns, with and without factors, and its network plays as well as one of `fsbench train`."""

import subprocess
import sys

import pytest

import fsbench
from conftest import FENS, ROOT


def train(*arguments):
    pytest.importorskip("torch")
    command = [sys.executable, ROOT / "scripts" / "train_pytorch.py", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("factor", ["", 'factor = "square(P) * role(P) * color(P)"'], ids=["plain", "factor"])
def test_the_example_learns(tmp_path, factor):
    path = tmp_path / "set.toml"
    path.write_text(f'features = "file(K) * square(P) * role(P) * color(P) for P in pieces"\n{factor}\n')
    options = ["--l1", 16, "--epochs", 1, "--lr", 0.003, "--batch-size", 4000, "--out", tmp_path / "net"]
    *_, saved, losses = train(path, *options)
    first, last = (float(word) for word in losses.split() if word[0].isdigit())
    assert last < 0.9 * first, losses
    agree = float(saved.split("agree in ")[1].split("%")[0])
    assert agree > 95, saved
    network = fsbench.Network(tmp_path / "net")
    assert network.shape == "(6144 → 16) × 2 → 32 → 1" and network.evaluate(FENS).any()


def test_a_match_against_a_network_of_fsbench(tmp_path, program):
    """Same set, data, shape and epochs: the interval of the difference holds 0, or lies above."""
    options = ["--l1", 16, "--epochs", 2, "--batch-size", 4096]
    train("piece", *options, "--out", tmp_path / "torch")
    program("train", "piece", *options, "--out", tmp_path / "own")
    played = program.json("match", "torch", "own", "--nodes", 1000, "--pairs", 100, cwd=tmp_path)
    assert played["elo"]["high"] > 0, played["elo"]
