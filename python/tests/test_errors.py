"""Errors are those of the command line; calls leave Python free, and end by Ctrl-C."""

import copy
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import sme

import programs

SMALL = dict(nodes=4, cores=1, episodes=2, no_host=True)


class Errors(unittest.TestCase):
    def assert_says(self, line, call):
        """`call` raises what the program says to `line`."""
        done = programs.sme(*line.split())
        self.assertEqual(done.returncode, 2, done)
        with self.assertRaises(sme.Error) as raised:
            call()
        self.assertEqual(f"sme: {raised.exception}\n", done.stderr)
        self.assertNotIn("\n", str(raised.exception))

    def test_messages_are_those_of_the_program(self):
        for line, call in [
            ("barrier --nods 4", lambda: sme.barrier(nods=4)),
            ("barrier --machine nosuch", lambda: sme.barrier(machine="nosuch")),
            ("barrier --machine no/such.toml", lambda: sme.barrier(machine=Path("no/such.toml"))),
            ("barrier --nodes 0", lambda: sme.barrier(nodes=0)),
            ("barrier --nodes 2,4", lambda: sme.barrier(nodes=[2, 4])),
            ("barrier --nodes=-1", lambda: sme.barrier(nodes=-1)),
            ("barrier --no-host=1", lambda: sme.barrier(no_host=1)),
            ("barrier --set engine.clok=1MHz", lambda: sme.barrier(set={"engine.clok": "1MHz"})),
            ("sweep --columns core", lambda: sme.sweep(columns="core")),
            ("barier", lambda: sme.run("barier")),
            ("mpi", lambda: sme.run("mpi")),
            ("litmus no/such.litmus", lambda: sme.run("litmus", Path("no/such.litmus"))),
        ]:
            with self.subTest(line):
                self.assert_says(line, call)

    def test_rows_go_to_the_caller_only(self):
        for flags, begins in [
            (dict(format="csv"), "--format: rows are returned"),
            (dict(output="rows.csv"), "--output: rows are returned"),
        ]:
            with self.assertRaisesRegex(sme.Error, begins):
                sme.barrier(**flags)
        with self.assertRaisesRegex(sme.Error, "has no rows"):
            sme.run("")
        self.assertFalse(Path("rows.csv").exists())

    def test_an_error_is_a_value_error(self):
        self.assertTrue(issubclass(sme.Error, ValueError))
        with self.assertRaises(ValueError):
            sme.latency(hops=99)

    def test_a_run_that_fails_has_its_rows(self):
        with TemporaryDirectory() as directory:
            flags = dict(block="fifo", fault="one place more", vcd=Path(directory, "fifo.vcd"))
            with self.assertRaises(sme.Failed) as raised:
                sme.run("rtl lockstep", **flags)
        self.assertIn("fifo", str(raised.exception))
        rows = raised.exception.table.to_pyarrow().to_pylist()
        self.assertEqual([(row["block"], row["mismatches"] > 0) for row in rows], [("fifo", True)])
        for again in [copy.copy(raised.exception), copy.deepcopy(raised.exception)]:
            self.assertEqual(str(again), str(raised.exception))
            self.assertIs(again.table, raised.exception.table)
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertIsInstance(again, sme.Failed)
        self.assertEqual(str(again), str(raised.exception))
        self.assertEqual(again.table.to_pyarrow().to_pylist(), rows)

    def test_help_is_an_error(self):
        with self.assertRaisesRegex(sme.Error, "--nodes"):
            sme.barrier(help=True)

    def test_commands_without_rows_are_those_of_the_document(self):
        for command in ["mpi run", "plot", "run"]:
            words = dict(plot=["rows.csv"], run=["points.toml"]).get(command, ["program"])
            with self.subTest(command), self.assertRaisesRegex(sme.Error, "has no rows"):
                sme.run(command, *words)

    def test_a_file_that_is_no_rows(self):
        with TemporaryDirectory() as directory:
            file = Path(directory, "rows.json")
            file.write_text('{"a":1}\n{"a":1,"a":2}\n', "utf-8")
            with self.assertRaisesRegex(sme.Error, r"rows\.json: line 2: "):
                sme.read(file)


class Import(unittest.TestCase):
    def test_the_module_refuses_other_interpreters(self):
        # It would wait for ever for the main one.
        script = (
            "import _xxsubinterpreters as interpreters\n"
            "try: interpreters.run_string(interpreters.create(), 'import sme')\n"
            "except interpreters.RunFailedError as error: print(error)\n"
        )
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if "No module named '_xxsubinterpreters'" in done.stderr:
            self.skipTest("this Python has such interpreters under another name")
        self.assertIn("sme runs in the main interpreter only", done.stdout)


class Calls(unittest.TestCase):
    """A call that writes to a pipe waits, outside of Python, until somebody reads there."""

    def setUp(self):
        self.directory = TemporaryDirectory()
        self.pipe = Path(self.directory.name, "pipe.csv")
        os.mkfifo(self.pipe)
        # A call that holds Python would wait for ever.
        faulthandler.dump_traceback_later(120, exit=True)

    def tearDown(self):
        faulthandler.cancel_dump_traceback_later()
        self.directory.cleanup()

    def test_other_threads_go_on_during_a_call(self):
        tables = []
        call = lambda: tables.append(sme.barrier(**SMALL, explain_to=self.pipe))  # noqa: E731
        thread = threading.Thread(target=call)
        thread.start()
        path = self.pipe.read_text("utf-8")
        thread.join()
        self.assertTrue(path.startswith("at_ns,"), path)
        self.assertEqual(tables[0].to_pyarrow(), sme.barrier(**SMALL).to_pyarrow())

    def test_ctrl_c_ends_a_call(self):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            sme.barrier(**SMALL, explain_to=self.pipe)
        timer.join()
        # What is left of it goes on to its end.
        self.assertTrue(self.pipe.read_text("utf-8").startswith("at_ns,"))


if __name__ == "__main__":
    unittest.main()
