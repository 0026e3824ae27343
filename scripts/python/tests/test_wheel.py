"""What pip installs: the module, the program and the entry in pip's list. FSBENCH_WHEEL names the wheel; building one takes
minutes."""

import os
import pathlib
import subprocess
import sys
import venv
import zipfile

import numpy
import pytest

from conftest import ROOT


@pytest.fixture(scope="module")
def wheel():
    path = os.environ.get("FSBENCH_WHEEL", "")
    if not os.path.isfile(path):
        pytest.skip("FSBENCH_WHEEL does not name a wheel of the package")
    return pathlib.Path(path)


def test_the_wheel_holds_module_and_program(wheel):
    assert "-cp310-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "fsbench/_fsbench.abi3.so" in names and "fsbench/_fsbench.pyi" in names and "fsbench/py.typed" in names
        (program,) = [name for name in names if name.endswith(".data/scripts/fsbench")]
        assert archive.read(program)[:4] == b"\x7fELF" or sys.platform != "linux"


def test_pip_alone_gives_module_and_program(wheel, tmp_path):
    """Without cargo, and without the variables that name a program."""
    pytest.importorskip("ensurepip")
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / "bin"
    environment = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(tmp_path), "FSBENCH_CACHE": str(tmp_path / "cache")}
    run = lambda *command: subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
    ).stdout
    run(binaries / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    # numpy is the one that runs this test, so that no network is needed.
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (packages / "numpy.pth").write_text(str(pathlib.Path(numpy.__file__).parents[1]))
    code = f"import fsbench; print(len(fsbench.FeatureSet('piece')), len(fsbench.results({str(ROOT / 'results/quickstart')!r})))"
    features, tables = run(binaries / "python", "-c", code).split()
    assert features == "768" and int(tables) >= 4
    assert run("fsbench", "--version").startswith("fsbench ")
