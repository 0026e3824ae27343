"""What the tests share: positions, and the program `fsbench` where FSBENCH_PROGRAM names it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
FENS = [
    START,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "4k3/P7/8/8/8/8/7p/4K3 b - - 0 1",
]
PIECE = "square(P) * role(P) * color(P) for P in pieces"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of its own, for the program too."""
    os.environ["FSBENCH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def program():
    """Runs the program and returns its stdout; the test is skipped without one."""
    path = os.environ.get("FSBENCH_PROGRAM", "")
    if not os.path.isfile(path):
        pytest.skip("FSBENCH_PROGRAM does not name the program fsbench")

    def run(*arguments, **options):
        command = [path, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout

    run.path = path
    run.json = lambda *arguments, **options: json.loads(run(*arguments, "--format", "json", **options))
    return run
