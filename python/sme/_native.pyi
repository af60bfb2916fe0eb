from typing import Callable, Optional

__version__: str

def main(arguments: list[str], /) -> int:
    """Runs the command line of these words, the program's name first; returns the exit status."""

_Parts = tuple[list[str], int, Callable[[], object], Callable[[], object]]
"""Names of the columns, the number of rows, and functions that return a capsule: the rows as a
stream, their schema."""

def run(
    path: list[str], flags: list[tuple[str, Optional[list[str]]]], /
) -> tuple[Optional[tuple[int, str]], _Parts]:
    """Runs a command; returns why it stopped (exit status, message), if it did, and its rows."""

def read(file: str, content: bytes, /) -> tuple[Optional[str], _Parts]:
    """Reads rows; returns why they are none, if they are not, and the rows."""

def remove_unfinished() -> None:
    """Removes the files that commands have begun and not finished."""
