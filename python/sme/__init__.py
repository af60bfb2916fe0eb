"""Simulates machines whose processors share memory without keeping it coherent.

Each function runs a command of the program ``sme`` in this process and returns its rows as a
:class:`Table`, which pyarrow, polars and pandas read where it is::

    import sme

    table = sme.sweep(nodes="1..64*2", cores=[1, 4], no_host=True)
    table.to_pandas().plot(x="threads", y="latency_mean_us")

Keyword arguments are the command's flags, with underscores: ``fan_in=8`` is ``--fan-in 8``. ``sme
barrier --help`` lists them. A value is

* ``True`` for a flag without a value; ``False`` and ``None`` leave the flag out;
* a number, a text or a path;
* a list, where the command takes one: ``nodes=[2, 4, 8]``, which is ``nodes="2,4,8"``;
* a dict for constants: ``set={"engine.clock": ["156MHz", "800MHz"]}``.

``machine`` is a name (``"scc"``), a file, or the text of a machine file (anything with a line
break). Names and values of columns are those of ``--format json``; what that has in the object
``host`` is called ``host_wall_s`` and so on, as in CSV. Several threads may call at the same time:
none holds Python while it simulates.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from . import _native
from ._native import __version__
from ._table import Table

__all__ = [
    "Error",
    "Failed",
    "Table",
    "__version__",
    "barrier",
    "latency",
    "network",
    "read",
    "run",
    "sweep",
]

_Scalar = Union[str, int, float, "os.PathLike[str]"]
Flag = Union[None, bool, _Scalar, Iterable[_Scalar], Mapping[str, Any]]


class Error(ValueError):
    """A flag or a file is wrong; the message is the program's one line (exit status 2)."""


class Failed(RuntimeError):
    """The run failed: a deadlock, a wrong result, a row out of tolerance (exit status 1)."""

    table: Table
    """The rows that were ready before."""

    def __init__(self, message: str, table: Table) -> None:
        super().__init__(message)
        self.table = table

    def __reduce__(self) -> tuple[type[Failed], tuple[str, Table]]:
        """Lets it be copied and pickled, and so be raised by a process of workers."""
        return type(self), (str(self), self.table)


def run(command: Union[str, Sequence[str]], /, *words: _Scalar, **flags: Flag) -> Table:
    """Runs any command that has rows: ``run("mpi pingpong", machine="scc", sizes=8)``.

    ``words`` are arguments without a flag: ``run("mpi collective", "allreduce", machine="scc")``.
    After Ctrl-C a sweep stops at its next row; another command goes on unseen until its end or that
    of the program, and its rows are lost.

    :raises Error: a flag or a file is wrong.
    :raises Failed: the run failed.
    """
    path = command.split() if isinstance(command, str) else list(command)
    path += [_text(word) for word in words]
    with _machine(flags) as given:
        taken = [(name, _values(value)) for name, value in given.items() if _is_given(value)]
        try:
            stop, parts = _native.run(path, taken)
        except KeyboardInterrupt:
            atexit.register(_clean_up, os.getpid())
            raise
    table = Table(*parts)
    if stop is None:
        return table
    status, message = stop
    if status == 1:
        raise Failed(message, table)
    raise Error(message)


def barrier(**flags: Flag) -> Table:
    """The row of one barrier experiment: ``barrier(nodes=8, cores=8, algorithm="tree")``."""
    return run("barrier", **flags)


def sweep(**flags: Flag) -> Table:
    """A row for every combination of lists: ``sweep(nodes="1..64*2", algorithm="all")``."""
    return run("sweep", **flags)


def network(**flags: Flag) -> Table:
    """A row for each load of the network: ``network(topology="mesh:4x4", load="0.1..0.9")``."""
    return run("network", **flags)


def latency(**flags: Flag) -> Table:
    """A row for each operation, and where its time goes: ``latency(machine="scc", hops=0)``."""
    return run("latency", **flags)


def read(file: Union[str, "os.PathLike[str]"]) -> Table:
    """The rows of a file that a command wrote with ``-o``, as CSV or as JSON lines.

    :raises Error: a line is no row; ``OSError`` where the file cannot be read.
    """
    path = Path(file)
    reason, parts = _native.read(str(path), path.read_bytes())
    if reason is not None:
        raise Error(reason)
    return Table(*parts)


def _is_given(value: Flag) -> bool:
    return value is not None and value is not False


def _values(value: Flag) -> Optional[list[str]]:
    """The values of a flag that is given; none if it takes none."""
    if value is True:
        return None
    if isinstance(value, Mapping):
        return [f"{key}={','.join(_values(of) or ())}" for key, of in value.items()]
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
        return [_text(value)]
    return [_text(item) for item in value]


def _text(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


@contextlib.contextmanager
def _machine(flags: dict[str, Flag]) -> Iterator[dict[str, Flag]]:
    """The flags, with the text of a machine as a file for as long as the command reads it."""
    machine = flags.get("machine")
    if not (isinstance(machine, str) and "\n" in machine):
        yield flags
        return
    with tempfile.TemporaryDirectory(prefix="sme-") as directory:
        file = Path(directory, "machine.toml")
        file.write_text(machine, encoding="utf-8")
        yield {**flags, "machine": file}


def _clean_up(process: int) -> None:
    # A process that was forked has not begun any of them.
    if os.getpid() == process:
        _native.remove_unfinished()
