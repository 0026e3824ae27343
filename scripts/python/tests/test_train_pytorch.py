"""The example trainer learns, with and without factors."""

import subprocess
import sys

import pytest

from conftest import ROOT


@pytest.mark.parametrize("factor", ["", 'factor = "square(P) * role(P) * color(P)"'], ids=["plain", "factor"])
def test_the_example_learns(tmp_path, factor):
    pytest.importorskip("torch")
    path = tmp_path / "set.toml"
    path.write_text(f'features = "file(K) * square(P) * role(P) * color(P) for P in pieces"\n{factor}\n')
    options = ["--l1", "16", "--steps", "100", "--lr", "0.003", "--batch-size", "1000"]
    command = [sys.executable, ROOT / "scripts" / "train_pytorch.py", path, *options]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    first, last = (float(word) for word in run.stdout.splitlines()[-1].split() if word[0].isdigit())
    assert last < 0.9 * first, run.stdout
