"""The examples of docs/python.md run, and print what stands beside them."""

import contextlib
import io
import os
import re
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import programs
import sme

ROOT = Path(__file__).parents[2]


def examples(document):
    """The blocks of Python in a document."""
    return re.findall(r"^```python\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)


class Documents(unittest.TestCase):
    def test_examples_run(self):
        found = examples((ROOT / "docs" / "python.md").read_text("utf-8"))
        self.assertGreater(len(found), 2)
        missing = []
        for example in found:
            needed = [name for name in ("pandas", "polars") if name in example]
            needed += ["matplotlib"] if ".plot(" in example else []
            lacking = [name for name in needed if not programs.is_installed(name)]
            missing += lacking
            if lacking:
                continue
            printed, before = io.StringIO(), os.getcwd()
            with TemporaryDirectory() as directory, contextlib.redirect_stdout(printed):
                os.chdir(directory)
                try:
                    exec(compile(example, "docs/python.md", "exec"), {})
                    written = os.listdir()
                finally:
                    os.chdir(before)
            for said in re.findall(r"print\(.*\) +# (.*)", example):
                self.assertEqual(printed.getvalue(), said + "\n")
            self.assertEqual(written, re.findall(r'savefig\("(.*)"\)', example))
        if missing:
            programs.lacks(missing[0])

    def test_the_version_is_that_of_the_workspace(self):
        manifest = (ROOT / "Cargo.toml").read_text("utf-8")
        self.assertIn(f'\nversion = "{sme.__version__}"\n', manifest)

    def test_every_function_has_words(self):
        for name in set(sme.__all__) - {"__version__"}:
            self.assertTrue(getattr(sme, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
