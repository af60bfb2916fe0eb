"""The program of the module, as its tests call it, and tools that may not be installed."""

import importlib.util
import json
import os
import subprocess
import sysconfig
from pathlib import Path

SCRIPT = Path(sysconfig.get_path("scripts"), "sme")


def sme(*arguments):
    """Runs the program that the wheel has installed."""
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=600)


def binary():
    """The program in Rust to compare with, if `SME_BINARY` names one."""
    return os.environ.get("SME_BINARY")


def json_rows(*arguments):
    """What the program prints as JSON lines, as `rows_of` has them."""
    done = sme(*arguments, "--format", "json")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return rows_of(done.stdout)


def rows_of(lines):
    """The rows of JSON lines; `host` flat, as in the columns."""
    return [flat(json.loads(line)) for line in lines.splitlines()]


def flat(row):
    """A row without objects in it."""
    fields = {}
    for key, value in row.items():
        if isinstance(value, dict):
            fields.update({f"{key}_{name}": inner for name, inner in value.items()})
        else:
            fields[key] = value
    return fields


def is_installed(module):
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def lacks(module):
    """Whether a test lacks a module, which it says to `.ci/run`, once a test."""
    if is_installed(module):
        return False
    print(f"\nskipped: {module} is not installed")
    return True
