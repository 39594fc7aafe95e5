"""What a wheel does where there is nothing but Python and it. Run by check.py with the Python of such an environment.

    python -I tests/wheels/installed.py

unittest, because pytest is not there.
"""

from __future__ import annotations

import json
import math
import re
import runpy
import subprocess
import sys
import sysconfig
import unittest
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
spelled_out = runpy.run_path(str(ROOT / "tests" / "helpers" / "extras.py"))["spelled_out"]
VECTORS = ROOT / "tests" / "vectors"

MISSING = {
    "lh.arrow.validate(Column(), 'kafka')": "pyarrow",
    "lh.arrow.scan(Column(), 'kafka')": "a scan needs {}: pip install 'letterhead[arrow]'",
    "lh.arrow.schema_id(Column())": "pip install 'letterhead[arrow]'",
    "lh.read.segments('.')": "reading segments needs {}: pip install 'letterhead[arrow]'",
    "lh.read.state('.')": "reading a state directory needs pyarrow: pip install 'letterhead[arrow,state]'",
    "lh.read.topic('t', bootstrap_servers='127.0.0.1:9')": "reading a topic needs {}: pip install 'letterhead[arrow,kafka]'",
    "lh.read.iggy('iggy://u:p@127.0.0.1:9', stream='s', topic='t')": (
        "reading a topic of Iggy needs {}: pip install 'letterhead[arrow]'"
    ),
    "lh.write.topic(None, 't', bootstrap_servers='127.0.0.1:9')": (
        "writing to a topic needs {}: pip install 'letterhead[arrow,kafka]'"
    ),
    "lh.where.parse('a = 1')": "a condition as SQL text needs sqlglot: pip install 'letterhead[sql]'",
    "lh.spark": "letterhead.spark needs {}: pip install 'letterhead[pyspark]'",
    "letterhead.state.storage.database.load_rocksdict()": "a persistent store needs rocksdict: pip install 'letterhead[state]'",
}
"""Expressions, and the error of each where no other package is installed."""


class Column:
    """A column that is never read: the missing package is found first."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return nothing."""
        raise ModuleNotFoundError("no pyarrow to make an array with")


def costs_less(module: str, other: str) -> bool:
    """Whether the fastest import takes less of the processor, each in a new process, in turns until it does."""
    least = {module: math.inf, other: math.inf}
    for _ in range(30):
        for imported in least:
            timed = f"import time; t = time.process_time(); import {imported}; print(time.process_time() - t)"
            least[imported] = min(least[imported], float(run(timed)))
        if least[module] < least[other]:
            return True
    return False


def run(program: str) -> str:
    """Run a program in a new process of this very environment."""
    command = [sys.executable, "-I", "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.strip()


class Installed(unittest.TestCase):
    """The package, as pip put it there."""

    def test_installed_package_is_imported_with_one_version(self) -> None:
        import letterhead
        from letterhead import _native

        there = Path(sysconfig.get_path("platlib"))
        self.assertEqual(Path(letterhead.__file__).parent, there / "letterhead")
        self.assertEqual(Path(_native.__file__).parent, there / "letterhead")
        self.assertEqual(metadata.version("letterhead"), _native.__version__)

    def test_only_letterhead_is_installed(self) -> None:
        distributions = {package.metadata["Name"].lower() for package in metadata.distributions()}
        self.assertEqual(distributions - {"pip", "setuptools"}, {"letterhead"})

    def test_wheel_has_types_stubs_and_licences(self) -> None:
        files = {str(path).replace("\\", "/") for path in metadata.files("letterhead") or []}
        about = f"letterhead-{metadata.version('letterhead')}.dist-info"
        required = {"letterhead/py.typed", "letterhead/_native.pyi", f"{about}/sboms/letterhead.cyclonedx.json"}
        required |= {f"{about}/licenses/{name}" for name in ("LICENSE", "NOTICE", "THIRD-PARTY.txt")}
        self.assertEqual(required - files, set())

    def test_every_vector_matches(self) -> None:
        sys.path.insert(0, str(ROOT))
        from tests.helpers.implementations import Message
        from tests.helpers.vector_checks import CHECKS, check_file

        self.assertGreater(len(CHECKS), 3)
        for name in CHECKS:
            with self.subTest(name):
                check_file(VECTORS, name, Message())

    def test_every_codec_is_included(self) -> None:
        import letterhead as lh

        messages = [{"key": b"k", "value": bytes(2000), "headers": {"n": str(n)}} for n in range(50)]
        plain = lh.batch(messages)
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            with self.subTest(codec):
                packed = lh.batch(messages, codec=codec)
                self.assertLess(len(packed), len(plain) // 4)
                read = [message.headers["n"] for message in lh.messages(packed, "record-batch")]
                self.assertEqual(read, [str(n).encode() for n in range(50)])

    def test_import_is_faster_than_asyncio_and_loads_nothing(self) -> None:
        self.assertTrue(costs_less("letterhead", "asyncio"))
        others = "{'pyarrow', 'pyspark', 'pandas', 'numpy', 'rocksdict', 'kafka', 'typer', 'rich', 'cryptography'}"
        self.assertEqual(run(f"import sys, letterhead; print({others} & set(sys.modules))"), "set()")

    def test_missing_package_is_named_with_its_extra(self) -> None:
        import letterhead as lh

        for call, output in MISSING.items():
            with self.subTest(call):
                scope = {"lh": lh, "Column": Column}
                if call.startswith("letterhead.state.storage"):
                    exec("import letterhead.state.storage.database", scope)
                with self.assertRaises(ImportError) as raised:
                    eval(call, scope)
                text = " ".join([str(raised.exception), *getattr(raised.exception, "__notes__", ())])
                expected = re.escape(spelled_out(output)).replace(
                    re.escape("{}"), "(pyarrow|numpy|pyspark|kafka-python 3.0.12 or later)"
                )
                self.assertRegex(text, expected)

    def test_command_names_missing_packages(self) -> None:
        suffix = ".exe" if sys.platform == "win32" else ""
        command = Path(sysconfig.get_path("scripts")) / f"letterhead{suffix}"
        done = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^letterhead: the command needs \w+: pip install 'letterhead\[cli\]'\n$")

    def test_extra_installs_listed_packages(self) -> None:
        requested = metadata.requires("letterhead") or []
        self.assertEqual([line for line in requested if "extra ==" not in line], [], "the core asks for nothing")
        extras = set(metadata.metadata("letterhead").get_all("Provides-Extra"))
        self.assertEqual(
            extras,
            {"arrow", "spark", "pyspark", "sail", "sql", "cli", "state", "kafka", "msk", "pkcs12", "produce", "plots"},
        )

    def test_gil_stays_off_where_disabled(self) -> None:
        import letterhead as lh

        # The first operation loads the module: one that needed the GIL would switch it on for all.
        lh.decode(b"", "kafka")
        is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
        self.assertEqual(is_enabled(), not sysconfig.get_config_var("Py_GIL_DISABLED"))

    def test_threads_sharing_headers_read_same_values(self) -> None:
        import letterhead as lh

        pairs = [(f"key-{n % 7}", str(n).encode()) for n in range(60)]
        data = lh.encode(pairs, "kafka")

        def work(_: int) -> list[object]:
            result: list[object] = []
            for _ in range(40):
                headers = lh.decode(data, "kafka")
                with ThreadPoolExecutor(4) as inner:
                    lists = list(inner.map(lambda _, shared=headers: shared._list(), range(4)))
                result.append(all(row is lists[0] for row in lists))
                result.append([tuple(header) for header in headers] == pairs and headers["key-3"] == b"59")
            return result

        with ThreadPoolExecutor(4) as pool:
            results = [outcome for result in pool.map(work, range(4)) for outcome in result]
        self.assertEqual(results, [True] * len(results))
        self.assertEqual(len(results), 320)

    def test_bill_of_materials_lists_crates_with_licences(self) -> None:
        about = f"letterhead-{metadata.version('letterhead')}.dist-info"
        path = Path(sysconfig.get_path("platlib")) / about / "sboms" / "letterhead.cyclonedx.json"
        bill = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["name"]), ("CycloneDX", "letterhead"))
        listed = {f"{part['name']} {part['version']}" for part in bill["components"] if part.get("licenses")}
        passed_on = (path.parents[1] / "licenses" / "THIRD-PARTY.txt").read_text(encoding="utf-8").split("=" * 100)[0]
        crates = set(re.findall(r"^(\S+ \d\S*) +\S.*$", passed_on, re.MULTILINE))
        self.assertGreater(len(crates & listed), 40)
        if sys.platform == "linux":
            others = {name.split()[0] for name in crates - listed}
            self.assertEqual(others - {"core-foundation-sys", "windows-link"}, set(), "but crates of other systems")


if __name__ == "__main__":
    unittest.main(verbosity=1)
