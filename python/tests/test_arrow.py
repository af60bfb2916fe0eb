"""A table is read by pyarrow, polars and pandas where it is, whatever its columns hold."""

import copy
import gc
import json
import pickle
import random
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import sme

import programs


def table_of(rows):
    """A table whose rows are these, by way of a file."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "rows.json")
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return sme.read(file)


def addresses(table):
    """Where a table of pyarrow has its buffers; none where there is none."""
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers()]
    return [buffer and buffer.address for buffer in buffers]


KINDS = {
    "truths": (lambda random: random.random() < 0.5, pa.bool_()),
    "integers": (lambda random: random.randrange(-(2**63), 2**63), pa.int64()),
    "counts": (lambda random: random.choice([0, 2**63, 2**64 - 1]), pa.uint64()),
    "reals_ns": (lambda random: random.uniform(-1e300, 1e300), pa.float64()),
    "texts": (lambda random: random.choice(["", "a", "é,\"", "𝔸" * 40]), pa.large_string()),
}


class Arrow(unittest.TestCase):
    def test_values_of_every_type_arrive(self):
        generator = random.Random(1)
        for length in (1, 7, 64, 65, 200):
            for missing in (0.0, 0.4):
                rows = [
                    {
                        name: None if generator.random() < missing else value(generator)
                        for name, (value, _) in KINDS.items()
                    }
                    for _ in range(length)
                ]
                # One of each, so that no column is without a value, nor of smaller ones.
                rows.append({name: value(generator) for name, (value, _) in KINDS.items()})
                rows[-1]["integers"], rows[-1]["counts"] = -1, 2**64 - 1
                table = table_of(rows).to_pyarrow()
                table.validate(full=True)
                self.assertEqual(table.schema.types, [kind for _, kind in KINDS.values()])
                self.assertEqual(table.to_pylist(), rows)

    def test_a_table_is_copied_and_pickled(self):
        for rows in [[], [{"a_ns": 1.5, "b": None, "c": "x"}, {"a_ns": 2.0, "b": None, "c": "y"}]]:
            table = table_of(rows)
            self.assertIs(copy.copy(table), table)
            self.assertIs(copy.deepcopy(table), table)
            again = pickle.loads(pickle.dumps(table))
            self.assertIsInstance(again, sme.Table)
            self.assertEqual(repr(again), repr(table))
            same = again.to_pyarrow().equals(table.to_pyarrow(), check_metadata=True)
            self.assertTrue(same)
            self.assertEqual(pa.schema(again), pa.schema(table))
            self.assertEqual(len(pickle.loads(pickle.dumps(again))), len(rows))

    def test_columns_of_several_types(self):
        for values, kind, expected in [
            ([None, None], pa.null(), [None, None]),
            ([1, 1.5], pa.float64(), [1.0, 1.5]),
            ([-1, 2**63], pa.float64(), [-1.0, float(2**63)]),
            ([0, 2**63], pa.uint64(), [0, 2**63]),
            ([1, "a"], pa.large_string(), ["1", "a"]),
            ([True, 1], pa.large_string(), ["true", "1"]),
        ]:
            table = table_of({"x": value} for value in values).to_pyarrow()
            table.validate(full=True)
            self.assertEqual(table.schema.field("x").type, kind)
            self.assertEqual(table["x"].to_pylist(), expected)
        # A row without a column that another one has.
        table = table_of([{"a": 1}, {"b": 2}]).to_pyarrow()
        self.assertEqual(table.to_pylist(), [{"a": 1, "b": None}, {"a": None, "b": 2}])

    def test_no_rows(self):
        table = table_of([])
        self.assertEqual((len(table), table.column_names), (0, []))
        self.assertEqual(table.to_pyarrow().num_rows, 0)

    def test_the_schema_is_that_of_the_rows(self):
        table = sme.barrier(nodes=4, cores=1, episodes=2)
        schema = pa.schema(table)
        self.assertTrue(schema.equals(table.to_pyarrow().schema, check_metadata=True))
        self.assertEqual(schema.names, table.column_names)
        units = {name: (schema.field(name).metadata or {}).get(b"unit") for name in schema.names}
        self.assertEqual(units["latency_mean_us"].decode(), "µs")
        self.assertEqual(units["host_wall_s"], b"s")
        self.assertIsNone(units["nodes"])

    def test_no_import_copies(self):
        table = sme.sweep(nodes=[1, 4], cores=1, episodes=2)
        first, second = table.to_pyarrow(), pa.table(table)
        self.assertEqual(first, second)
        self.assertEqual(addresses(first), addresses(second))
        self.assertGreater(sum(map(bool, addresses(first))), len(table.column_names))

    def test_columns_outlive_their_table(self):
        table = table_of({"x_ns": number, "y": str(number)} for number in range(1000))
        imported = table.to_pyarrow()
        expected = imported.to_pylist()
        column = imported["y"].chunk(0)
        del table
        gc.collect()
        self.assertEqual(imported.to_pylist(), expected)
        # What is imported releases each column by itself.
        del imported
        gc.collect()
        self.assertEqual(column.to_pylist(), [row["y"] for row in expected])

    def test_a_capsule_is_read_once_and_may_be_left(self):
        table = table_of([{"x": 1}])
        for _ in range(1000):
            del_me = (table.__arrow_c_stream__(), table.__arrow_c_schema__())
            del del_me
        capsule = table.__arrow_c_stream__()

        class Holder:
            def __arrow_c_stream__(self, requested_schema=None):
                return capsule

        self.assertEqual(pa.table(Holder()).to_pylist(), [{"x": 1}])
        with self.assertRaises((pa.ArrowInvalid, ValueError)):
            pa.table(Holder())

    def test_a_stream_ends_after_its_batch(self):
        reader = pa.RecordBatchReader.from_stream(table_of([{"x": 1}, {"x": 2}]))
        self.assertEqual(reader.read_next_batch().num_rows, 2)
        for _ in range(2):
            with self.assertRaises(StopIteration):
                reader.read_next_batch()

    def test_a_table_says_what_it_is(self):
        table = table_of([dict.fromkeys("abcdefgh", 1)])
        self.assertEqual(repr(table), "<sme.Table: 1 row of 8 columns: a, b, c, d, e, f, …>")

    def test_polars(self):
        if programs.lacks("polars"):
            return
        import polars

        table = sme.sweep(nodes=[1, 4], cores=1, episodes=2, no_host=True)
        expected = table.to_pyarrow().to_pylist()
        for frame in (table.to_polars(), polars.from_arrow(table.to_pyarrow())):
            self.assertEqual(frame.to_dicts(), expected)

    def test_pandas(self):
        if programs.lacks("pandas"):
            return
        table = sme.sweep(nodes=[1, 4], cores=1, episodes=2, no_host=True)
        frame = table.to_pandas()
        self.assertEqual(list(frame.columns), table.column_names)
        self.assertEqual(frame["nodes"].tolist(), [1, 4])
        of_frame = frame["latency_mean_us"].array.__arrow_array__().chunk(0).buffers()[1]
        of_table = table.to_pyarrow()["latency_mean_us"].chunk(0).buffers()[1]
        self.assertEqual(of_frame.address, of_table.address)
        copied = table.to_pandas(types_mapper=None)
        self.assertEqual(str(copied["nodes"].dtype), "int64")


if __name__ == "__main__":
    unittest.main()
