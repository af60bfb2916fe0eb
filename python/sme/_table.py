"""What the functions of this module return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """Rows of a command, column by column, in Arrow's layout.

    Any library that knows Arrow's PyCapsule interface reads it without a copy:
    ``pyarrow.table(table)``, ``polars.DataFrame(table)``. A column is of 64-bit integers, of floats,
    texts or truths, or null where no row has a value. The metadata of its field has the ``unit``
    that its name ends with.
    """

    __slots__ = ("_names", "_rows", "_schema", "_stream")

    def __init__(
        self,
        names: list[str],
        rows: int,
        stream: Callable[[], object],
        schema: Callable[[], object],
    ) -> None:
        self._names = names
        self._rows = rows
        self._stream = stream
        self._schema = schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in the order of the keys in JSON."""
        return list(self._names)

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        shown = ", ".join(self._names[:6]) + (", …" if len(self._names) > 6 else "")
        rows = "1 row" if self._rows == 1 else f"{self._rows} rows"
        return f"<sme.Table: {rows} of {len(self._names)} columns: {shown}>"

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows as a capsule, for libraries; no other schema than the table's is offered."""
        return self._stream()

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns as a capsule, for libraries."""
        return self._schema()

    def __copy__(self) -> Table:
        """The table itself, as it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Table:
        return self

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[pyarrow.Table]]:
        """Lets it be pickled as a table of pyarrow, which must be installed on both sides."""
        return _of_pyarrow, (self.to_pyarrow(),)

    def to_pyarrow(self) -> pyarrow.Table:
        """As a table of pyarrow, which must be installed."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """As a frame of pandas over the same memory (pandas and pyarrow must be installed).

        ``options`` are those of ``pyarrow.Table.to_pandas``; ``types_mapper=None`` copies into the
        types of numpy.
        """
        import pandas

        options.setdefault("types_mapper", pandas.ArrowDtype)
        return self.to_pyarrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """As a frame of polars, which must be installed."""
        import polars

        return polars.DataFrame(self)


def _of_pyarrow(table: pyarrow.Table) -> Table:
    names = list(table.column_names)
    return Table(names, len(table), table.__arrow_c_stream__, table.schema.__arrow_c_schema__)
