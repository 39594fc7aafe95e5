"""The package as it is imported: fast, with nothing that not everyone has, and all names in their place."""

from __future__ import annotations

import builtins
import importlib
import math
import subprocess
import sys
from types import ModuleType

import pytest

import letterhead as lh
from letterhead import _native, kip82
from tests.helpers.extras import spelled_out


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=300, capture_output=True, text=True
    ).stdout.strip()


def test_import_loads_neither_arrow_nor_spark() -> None:
    others = "{'pyarrow', 'pyspark', 'pandas', 'numpy', 'rocksdict', 'kafka', 'typer', 'rich', 'cryptography'}"
    loaded = f"({others} | {{'letterhead.arrow', 'letterhead.spark'}}) & set(sys.modules)"
    program = f"import sys, letterhead; from letterhead import *; print(sorted({loaded}))"
    assert run(program) == "[]"


def test_kip82_classes_need_no_extra() -> None:
    program = (
        "import sys, letterhead.kip82 as k; k.ProducerRecord('t', headers={'a': 'b'}).to_bytes(); "
        "print({'pyarrow', 'pyspark', 'pandas', 'numpy', 'rocksdict', 'cryptography', 'letterhead.kip82.log'} & set(sys.modules))"
    )
    assert run(program) == "set()"


@pytest.mark.full
def test_import_is_faster_than_asyncio() -> None:
    # Time of the processor, in turns: what else the machine does counts little, and may only add to the least.
    least = {"letterhead": math.inf, "asyncio": math.inf}
    for _ in range(30):
        for module in least:
            timed = f"import time; t = time.process_time(); import {module}; print((time.process_time() - t) * 1e3)"
            least[module] = min(least[module], float(run(timed)))
        if least["letterhead"] < least["asyncio"]:
            break
    assert least["letterhead"] < least["asyncio"]


def test_submodules_are_loaded_on_first_use() -> None:
    assert run("import letterhead as lh; print(lh.arrow.__name__, lh.errors.__name__)") == (
        "letterhead.arrow letterhead.errors"
    )


@pytest.mark.parametrize("package", [lh, kip82], ids=lambda package: package.__name__)
def test_every_public_name_is_listed_and_documented(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'arow'"):
        _ = package.arow


@pytest.mark.parametrize(
    "name",
    [
        "arrow",
        "conventions",
        "errors",
        "fields",
        "headers",
        "iggy",
        "kip82",
        "read",
        "scan",
        "spark",
        "state",
        "testing",
        "types",
        "where",
        "write",
    ],
)
def test_dir_of_public_module_lists_only_public_names(name: str) -> None:
    if name == "spark":
        pytest.importorskip("pyspark")
    module = importlib.import_module(f"letterhead.{name}")
    assert dir(module) == sorted(module.__all__)


def test_dir_of_package_lists_only_public_modules_and_names() -> None:
    modules = ["arrow", "iggy", "kip82", "read", "schemas", "spark", "state", "testing", "where", "write"]
    assert dir(lh) == sorted([*lh.__all__, *modules, "open", "__version__"])
    assert lh.__version__ == _native.__version__


def test_star_import_shadows_no_builtin() -> None:
    assert set(lh.__all__) & set(dir(builtins)) == set()


@pytest.mark.parametrize(
    ("missing", "requested", "message"),
    [
        ("pyspark", "lh.spark", "letterhead.spark needs pyspark: pip install 'letterhead[pyspark]'"),
        ("pyarrow", "lh.spark", "letterhead.spark needs pyarrow: pip install 'letterhead[pyspark]'"),
        ("pyarrow", "lh.read.segments", "reading segments needs pyarrow: pip install 'letterhead[arrow]'"),
        ("pyarrow", "lh.read.topic", "reading a topic needs pyarrow: pip install 'letterhead[arrow,kafka]'"),
        ("pyarrow", "lh.read.iggy", "reading a topic of Iggy needs pyarrow: pip install 'letterhead[arrow]'"),
        ("pyarrow", "lh.write.iggy", "writing to a topic of Iggy needs pyarrow: pip install 'letterhead[arrow]'"),
        ("pyarrow", "lh.write.topic", "writing to a topic needs pyarrow: pip install 'letterhead[arrow,kafka]'"),
        ("numpy", "importlib.import_module('letterhead.scan')", "a scan needs numpy: pip install 'letterhead[arrow]'"),
    ],
)
def test_missing_package_is_named_with_its_extra(missing: str, requested: str, message: str) -> None:
    program = (
        f"import importlib, sys; sys.modules[{missing!r}] = None; import letterhead as lh\n"
        f"try:\n    {requested}\nexcept ModuleNotFoundError as error:\n    print(error.name, error)"
    )
    assert run(program).startswith(f"{missing} {spelled_out(message)}")


def test_import_starts_no_thread() -> None:
    program = "import letterhead, threading; letterhead.decode(b'', 'kafka'); print(threading.active_count())"
    assert run(program) == "1"


def test_arguments_are_checked_without_asserts():
    pytest.importorskip("pyarrow")
    program = (
        "import letterhead as lh\n"
        "for stream in ('', 'x' * 256, -1):\n"
        "    try:\n"
        "        lh.read.iggy('iggy://a:b@127.0.0.1:1', stream=stream, topic='t')\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-O", "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "the name of the stream must have 1 to 255 bytes",
        "the name of the stream must have 1 to 255 bytes",
        "stream must be a name or a number of 32 bits, not -1",
    ]


def test_brokers_argument_is_positional() -> None:
    pytest.importorskip("pyarrow")
    lh.read.topic("orders", "127.0.0.1:9").close()
