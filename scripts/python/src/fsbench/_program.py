"""The program fsbench, which the package brings along."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator

from ._fsbench import Error, RequestError

WRONG_REQUEST = 2
"""The program's exit status for a wrong request."""


def places() -> Iterator[pathlib.Path]:
    if os.environ.get("FSBENCH_PROGRAM"):
        yield pathlib.Path(os.environ["FSBENCH_PROGRAM"])
        return
    # Beside the package, as `pip install --target` puts it; with the other scripts, as pip does without.
    yield pathlib.Path(__file__).parents[1] / "bin" / "fsbench"
    yield pathlib.Path(sysconfig.get_path("scripts")) / "fsbench"
    found = shutil.which("fsbench")
    if found:
        yield pathlib.Path(found)


def path() -> str:
    """The program that FSBENCH_PROGRAM names, else the package's own, else the one on PATH."""
    for place in places():
        if place.is_file():
            return str(place)
    raise Error("the program fsbench is not there: install the package anew, or let FSBENCH_PROGRAM name it")


def output(*arguments: str) -> str:
    """What the program prints."""
    done = subprocess.run([path(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.strip() or f"fsbench {' '.join(arguments)} failed with status {done.returncode}"
    raise (RequestError if done.returncode == WRONG_REQUEST else Error)(message.removeprefix("error: "))
