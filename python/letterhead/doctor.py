"""What is here to run letterhead with, what of it is wrong, and how to mend it: ``letterhead doctor``.

:func:`examine` looks at the process that it runs in, :func:`findings` judges what it saw. :func:`examine` needs nothing but
Python itself, and imports letterhead only to see whether it can: :func:`letterhead.spark.doctor` sends it to workers
that may not have letterhead at all.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import socket
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Finding", "Place", "Report", "examine", "findings", "report"]

PACKAGES = {"pyarrow": "pyarrow", "pandas": "pandas", "protobuf": "google.protobuf", "pyspark": "pyspark"}
"""What Spark works with, by the names of the packages, and what they are imported as."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or worth a note.

    Attributes
    ----------
    level : {"wrong", "note"}
        Whether something does not work, or works and may surprise.
    where : str
        The place: ``"driver"``, or which executors.
    what : str
        What was seen.
    mend : str
        What to do about it.
    """

    level: Literal["wrong", "note"]
    where: str
    what: str
    mend: str


@dataclass(frozen=True)
class Place:
    """One process, or several that are alike.

    Attributes
    ----------
    name : str
        Such as ``"driver"`` and ``"2 executors"``.
    facts : mapping
        What :func:`examine` saw.
    """

    name: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """What was seen everywhere, and what of it is wrong; as text it is a table.

    Attributes
    ----------
    places : list of Place
        The driver first.
    settings : dict of str to str
        Those of Spark that bear on Arrow; empty without a session.
    findings : list of Finding
        What is wrong comes first.
    """

    places: list[Place]
    settings: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; there may be notes."""
        return all(each.level != "wrong" for each in self.findings)

    def to_json(self) -> str:
        """Give the report as JSON."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=2)

    def __str__(self) -> str:
        rows = [("", *(place.name for place in self.places))]
        cells = [_rows(place.facts) for place in self.places]
        rows += [(name, *(each[name] for each in cells)) for name in cells[0]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"{name}={value}" for name, value in self.settings.items()]
        for each in self.findings:
            lines += ["", f"{each.level}: {each.where}: {each.what}", f"  {each.mend}"]
        if not self.findings:
            lines += ["", "nothing is wrong"]
        return "\n".join(lines)

    __repr__ = __str__


def report() -> Report:
    """Examine this process and judge it.

    Returns
    -------
    Report
        With one place, the driver.

    Examples
    --------
    >>> from letterhead import doctor
    >>> seen = doctor.report()
    >>> seen.places[0].facts["decode"]["message"], seen.ok
    ('right', True)
    """
    facts = examine()
    return Report([Place("driver", facts)], findings=sort(findings(facts, "driver")))


# What is here. ---------------------------------------------------------------------------------------------------------


def examine() -> dict[str, Any]:
    """Look at this process.

    Returns
    -------
    dict
        What JSON can hold: Python, system, letterhead, packages, what came of a decode, and what workers would run.
    """
    return {
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "abi": sysconfig.get_config_var("SOABI") or "",
            "executable": sys.executable,
        },
        "system": {
            "name": platform.system(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip(),
            "host": socket.gethostname(),
        },
        "letterhead": _letterhead(),
        "packages": {name: _package(module) for name, module in PACKAGES.items()},
        "decode": {"message": _decoded(_decode_message), "column": _decoded(_decode_column)},
        "workers": {
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON"),
            "python3": shutil.which("python3"),
            "java": shutil.which("java", path=_java_path()),
        },
    }


def _java_path() -> str:
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin") if home else os.environ.get("PATH", os.defpath)


def _package(module: str) -> dict[str, str] | None:
    """Give the version of a package, or why it cannot be imported; nothing where it is not there."""
    try:
        return {"version": str(importlib.import_module(module).__version__)}
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            return None
        return {"error": _said(error)}
    except Exception as error:
        return {"error": _said(error)}


def _letterhead() -> dict[str, Any]:
    """Look at letterhead as this process imports it."""
    try:
        package = importlib.import_module("letterhead")
    except Exception as error:
        return {"error": _said(error)}
    location = Path(str(package.__file__)).parent
    facts: dict[str, Any] = {"location": str(location), "build": _build(location), "tags": [], "requires": []}
    version = None
    distribution = _distribution(location)
    if distribution is not None:
        version = distribution.version
        wheel = distribution.read_text("WHEEL") or ""
        facts["tags"] = re.findall(r"^Tag: *(\S+)", wheel, re.MULTILINE)
        facts["requires"] = distribution.requires or []
    try:
        native = importlib.import_module("letterhead._native").__version__
        version = version or native
    except Exception as error:
        facts["error"] = _said(error)
    return {"version": version, **facts}


def _distribution(location: Path) -> importlib.metadata.Distribution | None:
    """Find what a package was installed by: beside it, or for an editable install elsewhere."""
    for found in importlib.metadata.distributions(name="letterhead", path=[str(location.parent)]):
        return found
    for found in importlib.metadata.distributions(name="letterhead"):
        if '"editable": true' in (found.read_text("direct_url.json") or ""):
            return found
    return None


def _build(location: Path) -> str:
    """Make a short digest of the code, by which two builds of one version are told apart."""
    digest = hashlib.sha256()
    for file in sorted([*location.rglob("*.py"), *location.glob("_native.*")]):
        if file.suffix != ".pyi":
            digest.update(file.relative_to(location).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _decoded(decode: Any) -> str | None:
    """Say what came of a decode: ``right``, or what went wrong; nothing where what it needs is not there."""
    try:
        return "right" if decode() else "the decoded headers are not those that were encoded"
    except ModuleNotFoundError as error:
        return None if error.name in ("letterhead", "pyarrow") else _said(error)
    except Exception as error:
        return _said(error)


def _decode_message() -> bool:
    import letterhead as lh

    # As Kafka Streams writes them: a repeated key, null and empty, and a key that is not ASCII.
    cell = bytes.fromhex("08 026b 0276 026b 00 02 6b 01 04 c3a9 02 78")
    return lh.decode(cell, "kafka") == lh.Headers([("k", b"v"), ("k", b""), ("k", None), ("é", b"x")])


def _decode_column() -> bool:
    import pyarrow as pa

    from letterhead import arrow as lha

    headers = [[{"key": "k", "value": b"v"}, {"key": "k", "value": None}], [], None]
    column = pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    cells = lha.encode(column, "kafka")
    made: bool = lha.decode(cells, "kafka").to_pylist() == [headers[0], [], []]
    return made and cells[0].as_py() == bytes.fromhex("04 026b 0276 026b 01")


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


# What is wrong with it. ------------------------------------------------------------------------------------------------


def findings(facts: Mapping[str, Any], where: str, *, executor: bool = False) -> list[Finding]:
    """Judge what was seen in a process.

    Parameters
    ----------
    facts : mapping
        What :func:`examine` gave.
    where : str
        What to call the process.
    executor : bool, default False
        Whether it is a worker of Spark: it needs letterhead and pyarrow, and neither pandas nor Java.

    Returns
    -------
    list of Finding
        Empty where all is well.
    """
    found: list[Finding] = []

    def add(level: Literal["wrong", "note"], what: str, mend: str) -> None:
        found.append(Finding(level, where, what, mend))

    own = facts["letterhead"]
    if "error" in own:
        what, mend = _broken(facts, executor)
        add("wrong", what, mend)
    # Without it there is nothing to decode with.
    for of, seen in facts["decode"].items():
        if seen not in ("right", None) and "error" not in own:
            add("wrong", f"a {of} that is decoded is not right: {seen}", _AGAIN)
    _judge_packages(facts, executor, add)
    if not executor and facts["packages"]["pyspark"] is not None:
        _judge_workers(facts, add)
    return found


_AGAIN = "install letterhead again: pip install --force-reinstall --no-deps letterhead"

_SHIP = (
    "ship it to the executors: copy the wheel to letterhead.zip, and set spark.archives=letterhead.zip#letterhead and "
    "spark.executorEnv.PYTHONPATH=letterhead; on Spark Connect add an archive of the package by addArtifacts"
)


def _broken(facts: Mapping[str, Any], executor: bool) -> tuple[str, str]:
    """Say why letterhead cannot be imported, as far as that can be told."""
    own, system, python = facts["letterhead"], facts["system"], facts["python"]
    error = own["error"]
    if "location" not in own and re.search(r"No module named 'letterhead'", error):
        return f"letterhead is not there ({python['executable']} has none)", _SHIP if executor else _AGAIN
    if ".zip/" in own.get("location", "") or ".whl/" in own.get("location", ""):
        return f"letterhead lies in a zip file, from which Python loads no native code: {own['location']}", _SHIP
    wanted, libc = _wanted_glibc(own.get("tags", [])), system["libc"]
    if wanted and not libc.startswith("glibc"):
        mend = "use an image with glibc, such as python:3.11-slim, or build letterhead there: maturin build --release"
        return f"the wheel of letterhead is for glibc, and the C library here is {libc or 'another one'}", mend
    if wanted and _numbers(libc) < wanted:
        mend = "use a newer image, or build letterhead on this one: maturin build --release"
        return f"the wheel of letterhead needs glibc {'.'.join(map(str, wanted))}, and this is {libc}", mend
    platforms = [tag.rpartition("-")[2] for tag in own.get("tags", [])]
    if platforms and not any(name == "any" or name.endswith(system["machine"]) for name in platforms):
        mend = f"take the wheel for {system['machine']}"
        return f"the wheel of letterhead is for {platforms[0]}, and this machine is {system['machine']}", mend
    return f"letterhead cannot be imported: {error}", _SHIP if executor else _AGAIN


def _judge_packages(facts: Mapping[str, Any], executor: bool, add: Any) -> None:
    packages = facts["packages"]
    with_spark = executor or packages["pyspark"] is not None
    needed = {"pyarrow": with_spark, "pandas": with_spark and not executor}
    wanted = _requirements(facts["letterhead"].get("requires", []))
    for name, seen in packages.items():
        if seen is None and needed.get(name):
            who = "every worker" if executor else "the driver of Spark"
            what = f"{name} is not there, and {who} needs it"
            add("wrong", what, f"pip install 'letterhead[spark]'{', where the workers run' if executor else ''}")
        elif seen is None and name == "protobuf" and with_spark:
            add("note", "protobuf is not there, and run_topology needs it", "pip install protobuf")
        elif seen is not None and "error" in seen:
            add("wrong", f"{name} cannot be imported: {seen['error']}", f"pip install --force-reinstall {name}")
        elif seen is not None:
            for sign, version in wanted.get(name, []):
                least, have = _numbers(version), _numbers(seen["version"])
                if sign == ">=" and have < least:
                    what = f"{name} {seen['version']} is too old: letterhead needs {version} or later"
                    add("wrong", what, f"pip install '{name}>={version}'")
                elif sign == "<" and have >= least:
                    what = f"{name} {seen['version']} is newer than what letterhead and Spark are tested with"
                    add("note", what, f"if something fails: pip install '{name}<{version}'")


def _judge_workers(facts: Mapping[str, Any], add: Any) -> None:
    seen, executable = facts["workers"], facts["python"]["executable"]
    if seen["PYSPARK_PYTHON"] is None and seen["python3"] is None:
        add("note", "PYSPARK_PYTHON is not set, and there is no python3 on the PATH", f"PYSPARK_PYTHON={executable}")
    elif seen["PYSPARK_PYTHON"] is None and os.path.dirname(seen["python3"]) != os.path.dirname(executable):
        what = f"PYSPARK_PYTHON is not set: workers run {seen['python3']}, and this is {executable}"
        add("note", what, f"export PYSPARK_PYTHON={executable}, or the path where the workers have theirs")
    if seen["java"] is None:
        what = "java is not there: Spark starts here only as a client of Spark Connect"
        add("note", what, "install Java 17 or 21, or set JAVA_HOME")


def _requirements(requires: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Give the bounds of versions that the package itself declares."""
    bounds: dict[str, list[tuple[str, str]]] = {}
    for line in requires:
        named = re.match(r"([A-Za-z0-9_-]+)([^;]*)", line)
        if named and named[1] in PACKAGES:
            bounds[named[1]] = re.findall(r"(>=|<)\s*([0-9.]+)", named[2])
    return bounds


def _wanted_glibc(tags: Iterable[str]) -> tuple[int, ...]:
    """Give the oldest glibc that a wheel runs on; nothing where its tags do not say."""
    found = [re.search(r"manylinux_(\d+)_(\d+)", tag) for tag in tags]
    return min(((int(each[1]), int(each[2])) for each in found if each), default=())


def _numbers(version: str) -> tuple[int, ...]:
    """Give the numbers that a version begins with, behind a name or not."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def sort(found: Iterable[Finding]) -> list[Finding]:
    """Put what is wrong before notes."""
    return sorted(found, key=lambda each: each.level != "wrong")


# A table. --------------------------------------------------------------------------------------------------------------


def _rows(facts: Mapping[str, Any]) -> dict[str, str]:
    own, python, system = facts["letterhead"], facts["python"], facts["system"]
    rows = {
        "python": f"{python['version']} {python['abi']}",
        "executable": python["executable"],
        "system": f"{system['name']} {system['machine']} {system['libc']}",
        "letterhead": f"{own['version']} build {own['build']}" if own.get("version") else own.get("error", ""),
        "location": own.get("location", "-"),
    }
    for name, seen in facts["packages"].items():
        rows[name] = "-" if seen is None else seen.get("version", "cannot be imported")
    for name, came in facts["decode"].items():
        rows[f"decode a {name}"] = came or "-"
    return rows
