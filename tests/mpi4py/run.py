#!/usr/bin/env python3
"""Runs mpi4py's own tests under `sme mpi run`, and holds what fails against failures.txt.

    python3 tests/mpi4py/run.py --tests mpi4py-4.1.2/test --sme target/release/sme
    python3 tests/mpi4py/run.py --tests mpi4py-4.1.2/test --quick --ranks 2 --machines scc

The interpreter that runs this must have mpi4py (its wheel, for MPICH's interface) and numpy;
--tests names the directory of tests in mpi4py's source archive of the same version. Each module is
run on its own, so that one that does not end stops no other; with --quick, the modules that take
seconds are run together, some of them on two ranks at most. Tests whose reason begins with "not
run" are left out. The status is 1 if a test fails that failures.txt does not name, if one that it
names fails nowhere, or if a run does not end well.
"""

import argparse
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent

# Hundreds of thousands of calls each, or minutes of computing.
LONG = """
    cco_buf cco_nb_buf cco_nb_vec cco_ngh_buf cco_pr_buf cco_pr_ngh_buf cco_pr_vec cco_vec datatype
    io msgspec p2p_buf rma rma_nb util_dtlib
""".split()

# These start processes, and run apart from all others with so many ranks in all.
STARTING = ["spawn", "util_pool"]
UNIVERSE = 32

# These sleep between two looks at what others have written, and run apart: their sleep is simulated
# time.
SLEEPING = ["util_sync"]

# mpi4py's pools of processes look for messages without sleeping in between: while a process sleeps
# on this computer, the others' simulated time stands still.
ENVIRONMENT = {**os.environ, "MPI4PY_FUTURES_BACKOFF": "0"}

# With more ranks than these, some modules that are quick otherwise take a minute: those that start
# processes, and those with the most calls.
FEW = 2
LONG_WITH_MANY = ["spawn", "p2p_buf_part", "pack", "util_pkl5"]

# A single rank starts more processes for its pools than several do, and while it does, the others
# look for messages every few nanoseconds there.
LONG_ON = {("sme-prototype", 1): ["util_pool"]}

LINE = re.compile(r"^\[(\d+)\] (.*)$")
FAILURE = re.compile(r"^(?:ERROR|FAIL|UNEXPECTED SUCCESS): (\w+) \(([\w.]+)\)")
RAN = re.compile(r"^Ran (\d+) tests? in")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="mpi4py's tests")
    parser.add_argument("--sme", default="sme", help="the program (default: sme)")
    parser.add_argument("--machines", nargs="+", default=["sme-prototype", "scc"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--modules", nargs="+", help="only these, such as p2p_obj")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="the longest run (default: 600)"
    )
    parser.add_argument("--logs", type=pathlib.Path, help="a directory for what the runs print")
    return parser.parse_args()


def read_known():
    """The tests that are known to fail: patterns of names with where, and the reason."""
    known = []
    for line in (HERE / "failures.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, where, reason = (part.strip() for part in line.split("|"))
            known.append((pattern, where, reason))
    return known


def patterns(known, machine, ranks, are_run):
    """The patterns of tests that fail there, and are run or not."""
    return [
        pattern
        for pattern, where, reason in known
        if fnmatch.fnmatch(f"{machine}/{ranks}", where) and reason.startswith("not run") != are_run
    ]


class Outcome:
    """What one run of some modules has brought."""

    def __init__(self):
        self.tests = {}
        self.failures = set()
        self.troubles = []

    def read(self, text, modules):
        """Reads what all ranks have printed."""
        for line in text.splitlines():
            found = LINE.match(line)
            if not found:
                continue
            rank, said = int(found[1]), found[2]
            if failure := FAILURE.match(said):
                name, path = failure[1], failure[2]
                self.failures.add(path if path.endswith("." + name) else f"{path}.{name}")
            elif ran := RAN.match(said):
                self.tests[rank] = int(ran[1])
        if not self.tests:
            self.troubles.append(f"no tests of {' '.join(modules)}")


def run(arguments, machine, ranks, modules, left_out):
    """Runs the tests of these modules on so many ranks, but those that match a pattern."""
    pattern = "^test_(" + "|".join(modules) + r")\.py$"
    command = [arguments.sme, "mpi", "run", "--machine", machine, "-n", str(ranks), "--prefix"]
    if modules[0] in STARTING:
        command += ["--universe", str(UNIVERSE)]
    if modules[0] in SLEEPING:
        command += ["--intercept-clocks"]
    command += [sys.executable, "main.py", "-v", "--no-builddir", "-i", pattern]
    command += [word for name in left_out for word in ("-x", name)]
    outcome = Outcome()
    try:
        ended = subprocess.run(
            command,
            cwd=arguments.tests,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=arguments.limit,
            check=False,
        )
        text = ended.stdout.decode(errors="replace")
        status = ended.returncode
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode(errors="replace")
        status = None
        outcome.troubles.append(f"{' '.join(modules)}: no end in {arguments.limit:.0f} s")
    outcome.read(text, modules)
    if len(outcome.tests) < ranks and not outcome.troubles:
        said = [line for line in text.splitlines() if line.startswith("sme: ")]
        outcome.troubles.append(f"{' '.join(modules)}: {(said or ['a rank ended early'])[-1]}")
    if status and not outcome.failures and not outcome.troubles:
        outcome.troubles.append(f"{' '.join(modules)}: ended with status {status}")
    if arguments.logs:
        arguments.logs.mkdir(parents=True, exist_ok=True)
        name = modules[0] if len(modules) == 1 else "quick"
        (arguments.logs / f"{machine}.{ranks}.{name}").write_text(text, encoding="utf-8")
    return outcome


def choose(arguments, machine, ranks, left_out):
    """The modules of each run there, but those of which all tests are left out."""
    found = sorted(path.stem[len("test_") :] for path in arguments.tests.glob("test_*.py"))
    if not found:
        sys.exit(f"{arguments.tests}: there are no tests of mpi4py")
    modules = [name for name in found if name in (arguments.modules or found)]
    modules = [name for name in modules if f"test_{name}.*" not in left_out]
    if not arguments.quick:
        return [[name] for name in modules]
    long = LONG + (LONG_WITH_MANY if ranks > FEW else []) + LONG_ON.get((machine, ranks), [])
    quick = [name for name in modules if name not in long]
    alone = [name for name in quick if name in STARTING + SLEEPING]
    together = [name for name in quick if name not in alone]
    return [modules for modules in [together, *([name] for name in alone)] if modules]


def main():
    arguments = parse_arguments()
    if "/" in arguments.sme:
        arguments.sme = str(pathlib.Path(arguments.sme).resolve())
    known = read_known()
    is_right = True
    # Patterns of tests that failures.txt lets fail somewhere, and the tests that have failed.
    awaited = set()
    failed = set()
    print(f"{'machine':<16}{'ranks':>6}{'tests':>7}{'failed':>8}{'unknown':>9}{'seconds':>9}")
    for machine in arguments.machines:
        for ranks in arguments.ranks:
            begin = time.monotonic()
            left_out = patterns(known, machine, ranks, are_run=False)
            expected = patterns(known, machine, ranks, are_run=True)
            runs = choose(arguments, machine, ranks, left_out)
            tests, failures = 0, set()
            troubles = [] if runs else ["none of the modules is run there"]
            for modules in runs:
                outcome = run(arguments, machine, ranks, modules, left_out)
                tests += max(outcome.tests.values(), default=0)
                failures |= outcome.failures
                troubles += outcome.troubles
            unknown = sorted(
                name
                for name in failures
                if not any(fnmatch.fnmatch(name, pattern) for pattern in expected)
            )
            names = {f"test_{name}" for modules in runs for name in modules}
            awaited |= {name for name in expected if name.split(".")[0] in names}
            failed |= failures
            seconds = time.monotonic() - begin
            print(
                f"{machine:<16}{ranks:>6}{tests:>7}{len(failures):>8}{len(unknown):>9}"
                f"{seconds:>9.0f}",
                flush=True,
            )
            for name in unknown:
                print(f"    fails: {name}")
            for trouble in troubles:
                print(f"    {trouble}")
            is_right &= not unknown and not troubles and tests > 0
    for pattern in sorted(awaited):
        if not any(fnmatch.fnmatch(name, pattern) for name in failed):
            print(f"    does not fail, as failures.txt says it does: {pattern}")
            is_right = False
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
