"""Builds the package for pip: the program fsbench, then by maturin the module, and both into one wheel.

FSBENCH_PROGRAM names a program that is built already.
"""

import json
import os
import pathlib
import shutil
import subprocess

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

HERE = pathlib.Path(__file__).parent
# What maturin puts among the scripts of the wheel. It asks for the folder whatever it does.
SCRIPTS = HERE / "fsbench.data" / "scripts"
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    add_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    add_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def add_program():
    source = os.environ.get("FSBENCH_PROGRAM") or built_program()
    target = SCRIPTS / "fsbench"
    if shutil.which("strip"):
        subprocess.run(["strip", "-o", target, source], check=True)
    else:
        shutil.copy(source, target)
    target.chmod(0o755)


def built_program():
    """The program's path. Without cargo, pip has installed a package that fetches a toolchain."""
    if not shutil.which("cargo"):
        from puccinialin import setup_rust

        os.environ.update(setup_rust())
    command = ["cargo", "build", "--release", "--locked", "--bin", "fsbench", "--message-format", "json-render-diagnostics"]
    command += ["--manifest-path", HERE.parents[1] / "Cargo.toml"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    (path,) = [message["executable"] for message in messages if message.get("executable")]
    return path
