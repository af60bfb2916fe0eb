"""The program ``sme``: the command line of the library, as the program in Rust has it."""

from __future__ import annotations

import os
import sys

from . import _native


def _open_closed_streams() -> None:
    """Leads a standard stream that is closed to nowhere, so that no file takes its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is this one.
            os.open(os.devnull, os.O_RDWR)


def main() -> int:
    """Does what the words behind the program's name ask for; returns the exit status."""
    _open_closed_streams()
    return _native.main(["sme", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
