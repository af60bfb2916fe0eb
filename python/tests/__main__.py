"""Runs all tests of the module: `python python/tests`, where the wheel is installed.

The last line is that of Rust's tests, which .ci/run counts."""

import signal
import sys
import unittest
from pathlib import Path


def main() -> int:
    # A shell makes what it starts in the background ignore Ctrl-C, which tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    suite = unittest.defaultTestLoader.discover(str(Path(__file__).parent))
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    said = "ok" if result.wasSuccessful() and passed > 0 else "FAILED"
    print(f"test result: {said}. {passed} passed; {failed} failed; {len(result.skipped)} ignored")
    return 0 if said == "ok" else 1


sys.exit(main())
