"""The program of the wheel is that in Rust: its output, exit status and end by signals.

`SME_BINARY` names the program in Rust; without it these tests ask for less."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import sme

import programs


def outcome(program, line, shell=""):
    """Status, stdout and stderr of a program, run in an empty directory by a shell."""
    with TemporaryDirectory() as directory:
        done = subprocess.run(
            ["sh", "-c", f'"$0" {line} {shell}', program],
            capture_output=True,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            timeout=600,
        )
        files = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
    return done.returncode, done.stdout, done.stderr, files


class Program(unittest.TestCase):
    def test_it_says_its_version(self):
        done = programs.sme("--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"sme {sme.__version__}\n"))
        as_module = subprocess.run([sys.executable, "-m", "sme", "--version"], capture_output=True)
        self.assertEqual(as_module.stdout.decode(), done.stdout)

    def test_it_simulates(self):
        done = programs.sme(*"barrier --nodes 4 --cores 2 --episodes 2 --no-host".split())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("latency_mean_us", done.stdout)

    def test_it_does_what_the_program_in_rust_does(self):
        binary = programs.binary()
        if binary is None:
            self.skipTest("SME_BINARY names no program to compare with")
        small = "--nodes 4 --cores 1 --episodes 2 --no-host"
        for line in [
            "--version",
            "--help",
            "nosuch",
            "barrier --nods 4",
            f"barrier {small}",
            f"barrier {small} --explain --format json",
            f"barrier {small} -o rows.csv --timeline trace.pftrace",
            f"barrier {small} -o no/such/rows.csv",
            "machines show scc",
        ]:
            # As it is; with stdout closed; with stderr closed; with a full disk and a closed pipe.
            for shell in ["", ">&-", "2>&-", "<&- >&-", ">/dev/full", "| head -c 1"]:
                with self.subTest(line=line, shell=shell):
                    expected = outcome(binary, line, shell)
                    self.assertEqual(outcome(programs.SCRIPT, line, shell), expected)

    def test_a_signal_ends_it_as_the_program_in_rust(self):
        names = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}
        for program in filter(None, [programs.SCRIPT, programs.binary()]):
            for number, name in names.items():
                with self.subTest(program=program, signal=name), TemporaryDirectory() as directory:
                    os.mkfifo(Path(directory, "pipe.csv"))
                    line = "barrier --nodes 64 --cores 16 --form readable --episodes 10000"
                    line += " --link-load pipe.csv -o rows.csv"
                    running = subprocess.Popen(
                        [program, *line.split()], cwd=directory, stderr=subprocess.PIPE, text=True
                    )
                    # It opens the pipe once it has read its flags, before it simulates.
                    with open(Path(directory, "pipe.csv")):
                        running.send_signal(number)
                        said = running.communicate(timeout=60)[1]
                    ended = (-number, f"sme: ended by {name}\n")
                    self.assertEqual((running.returncode, said), ended)
                    self.assertEqual(os.listdir(directory), ["pipe.csv"])


if __name__ == "__main__":
    unittest.main()
