"""The functions return the rows that the program prints."""

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import sme

import programs


class Rows(unittest.TestCase):
    def assert_same(self, table, line):
        """The rows of `table` are those of the command `line`: names, order, values and types."""
        expected = programs.json_rows(*line.split())
        self.assertGreater(len(expected), 0)
        self.assertEqual(len(table), len(expected))
        self.assertEqual(table.column_names, list(expected[0]))
        rows = table.to_pyarrow().to_pylist()
        for row, of_program in zip(rows, expected):
            self.assertEqual(row, of_program)
            self.assertEqual([*map(type, row.values())], [*map(type, of_program.values())])

    def test_barrier(self):
        table = sme.barrier(nodes=4, cores=2, episodes=3, fan_in=2, no_host=True)
        self.assert_same(table, "barrier --nodes 4 --cores 2 --episodes 3 --fan-in 2 --no-host")

    def test_sweep(self):
        table = sme.sweep(
            nodes=[1, 4],
            cores=range(1, 3),
            episodes=2,
            algorithm="flat,tree",
            set={"engine.clock": ["156MHz", "800MHz"]},
            no_host=True,
            jobs=None,
            resume=False,
        )
        self.assertEqual(len(table), 16)
        self.assert_same(
            table,
            "sweep --nodes 1,4 --cores 1..2 --episodes 2 --algorithm flat,tree "
            "--set engine.clock=156MHz,800MHz --no-host",
        )

    def test_network(self):
        table = sme.network(topology="mesh:3x3", load=[0.2, 0.4], no_host=True)
        self.assert_same(table, "network --topology mesh:3x3 --load 0.2,0.4 --no-host")

    def test_latency(self):
        table = sme.latency(machine="scc", hops=[0, 1])
        self.assert_same(table, "latency --machine scc --hops 0,1")

    def test_other_commands(self):
        table = sme.run("mpi pingpong", machine="scc", sizes=[8, 64], no_host=True)
        self.assert_same(table, "mpi pingpong --machine scc --sizes 8,64 --no-host")
        flags = dict(machine="scc", sizes=8, ranks=4, no_host=True)
        table = sme.run("mpi collective", "allreduce", **flags)
        line = "mpi collective allreduce --machine scc --sizes 8 --ranks 4 --no-host"
        self.assert_same(table, line)
        table = sme.run(["machines", "show"], "ideal")
        self.assert_same(table, "machines show ideal")

    def test_throughput_tables(self):
        table = sme.run("coherence bench", sizes=4096)
        expected = programs.sme("coherence", "bench", "--sizes", "4096", "--format", "json").stdout
        self.assertEqual(table.to_pyarrow().to_pylist(), programs.rows_of(expected))

    def test_chosen_columns(self):
        table = sme.sweep(nodes=[1, 4], cores=1, episodes=2, columns=["threads", "machine"])
        self.assertEqual(table.column_names, ["threads", "machine"])
        rows = [{"threads": threads, "machine": "sme-prototype"} for threads in (1, 4)]
        self.assertEqual(table.to_pyarrow().to_pylist(), rows)

    def test_what_belongs_to_the_host_is_flat(self):
        table = sme.barrier(nodes=4, cores=1, episodes=2)
        expected = programs.json_rows("barrier", "--nodes", "4", "--cores", "1", "--episodes", "2")
        self.assertEqual(table.column_names, list(expected[0]))
        self.assertEqual(table.column_names[-4], "host_wall_s")
        self.assertGreater(table.to_pyarrow()["host_wall_s"][0].as_py(), 0)

    def test_a_machine_is_a_name_or_a_file_or_a_text(self):
        text = Path(__file__).parents[2].joinpath("machines", "ideal.toml").read_text("utf-8")
        flags = dict(nodes=4, cores=1, episodes=2, no_host=True)
        with TemporaryDirectory() as directory:
            file = Path(directory, "mine.toml")
            file.write_text(text, "utf-8")
            tables = [sme.barrier(machine=of, **flags).to_pyarrow() for of in ("ideal", file, text)]
        # A file may be called otherwise than its machine.
        by_name, by_file, by_text = (table.drop_columns(["machine"]) for table in tables)
        self.assertEqual(by_file, by_name)
        self.assertEqual(by_text, by_name)

    def test_files_are_read_as_they_were_written(self):
        flags = dict(nodes=[1, 4], cores=1, episodes=2, no_host=True)
        expected = sme.sweep(**flags, columns="nodes,fan_in,placement,latency_mean_us")
        expected = expected.to_pyarrow().to_pylist()
        words = "sweep --nodes 1,4 --cores 1 --episodes 2 --no-host".split()
        words += ["--columns", "nodes,fan_in,placement,latency_mean_us", "-o"]
        with TemporaryDirectory() as directory:
            for name in ("rows.csv", "rows.json"):
                file = Path(directory, name)
                self.assertEqual(programs.sme(*words, file).returncode, 0)
                self.assertEqual(sme.read(file).to_pyarrow().to_pylist(), expected, name)


if __name__ == "__main__":
    unittest.main()
