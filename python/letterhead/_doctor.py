"""Check an installation: versions of installed components, missing components, and how to install them.

:func:`report` examines this process. :func:`examine` needs only Python, and imports letterhead only to test the import:
:func:`letterhead.spark.doctor` runs it on executors that may not have letterhead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from letterhead._optional_dependencies import pip_install

__all__ = ["Finding", "Report", "examine", "findings", "report"]

PACKAGES = {"pyarrow": "arrow", "pandas": "spark", "protobuf": "spark", "pyspark": "pyspark", "rocksdict": "state"}
PACKAGES |= {"kafka-python": "kafka", "pysail": "sail", "jsonschema-rs": "json-schema", "grpcio-tools": "protobuf"}
"""Optional packages, with the extra that installs each."""

_MODULES = {"protobuf": "google.protobuf", "kafka-python": "kafka", "jsonschema-rs": "jsonschema_rs"}
_MODULES |= {"grpcio-tools": "grpc_tools"}
"""Module names by package name, where they differ."""

SHIP = "ship letterhead.zip, a copy of the wheel: spark.archives=letterhead.zip#letterhead spark.executorEnv.PYTHONPATH=letterhead"


@dataclass(frozen=True)
class Finding:
    """Problem (``wrong``) or remark (``note``): the process it concerns, a description and a remedy."""

    level: Literal["wrong", "note"]
    where: str
    problem: str
    remedy: str


@dataclass(frozen=True)
class Report:
    """Report of :func:`examine` by process, driver first, with Spark's settings and findings. Prints as a table."""

    places: Mapping[str, Mapping[str, Any]]
    settings: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no problems were found; notes do not count."""
        return all(finding.level != "wrong" for finding in self.findings)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=2)

    def __str__(self) -> str:
        columns = [_rows(facts) for facts in self.places.values()]
        rows = [("", *self.places)]
        rows += [(name, *(column[name] for column in columns)) for name in columns[0]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"{name}={value}" for name, value in self.settings.items()]
        for finding in self.findings:
            lines += ["", f"{finding.level}: {finding.where}: {finding.problem}", f"  {finding.remedy}"]
        return "\n".join([*lines, *([] if self.findings else ["", "nothing is wrong"])])

    __repr__ = __str__


def report() -> Report:
    """Examine this process.

    Examples
    --------
    >>> from letterhead import _doctor
    >>> seen = _doctor.report()
    >>> seen.places["driver"]["decode"], seen.ok
    ('right', True)
    """
    facts = examine()
    return Report({"driver": facts}, findings=findings(facts, "driver"))


def examine() -> dict[str, Any]:
    """Return the components of this process as JSON-compatible values."""
    home = os.environ.get("JAVA_HOME")
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": " ".join([platform.system(), platform.machine(), *platform.libc_ver()]).strip(),
        "host": socket.gethostname(),
        "letterhead": _letterhead(),
        "decode": _decode(),
        "packages": {name: _version(_MODULES.get(name, name)) for name in PACKAGES},
        "java": shutil.which("java", path=os.path.join(home, "bin") if home else None),
        "workers": os.environ.get("PYSPARK_PYTHON") or shutil.which("python3"),
    }


def _version(module: str) -> str | None:
    """Return the version of a package, the error of its import, or None if it is not installed."""
    try:
        return getattr(importlib.import_module(module), "__version__", "installed")
    except ModuleNotFoundError:
        return None
    except Exception as error:
        return f"cannot be imported: {_describe_error(error)}"


def _letterhead() -> dict[str, Any]:
    facts: dict[str, Any] = {}
    try:
        location = Path(str(importlib.import_module("letterhead").__file__)).parent
        facts = {"location": str(location), "requires": []}
        for installed in importlib.metadata.distributions(name="letterhead", path=[str(location.parent)]):
            facts |= {"version": installed.version, "requires": installed.requires or []}
        return {"version": importlib.import_module("letterhead._native").__version__, **facts}
    except Exception as error:
        return {**facts, "error": _describe_error(error)}


def _decode() -> str:
    """Return ``right`` if a sample of Kafka Streams headers decodes correctly, otherwise the error."""
    try:
        import letterhead as lh

        headers = lh.decode(bytes.fromhex("08 026b 0276 026b 00 02 6b 01 04 c3a9 02 78"), "kafka")
        expected = [("k", b"v"), ("k", b""), ("k", None), ("é", b"x")]
        return "right" if headers.items() == expected else f"{headers}"
    except Exception as error:
        return _describe_error(error)


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0].removesuffix(": ")


def findings(facts: Mapping[str, Any], where: str, *, executor: bool = False, sail: bool = False) -> list[Finding]:
    """Return the findings for one process, problems first; an executor of Spark needs only letterhead and pyarrow.

    A server of Sail runs Python in its own process, without Java and ``PYSPARK_PYTHON``.
    """
    results: list[Finding] = []

    def add(level: Literal["wrong", "note"], problem: str, remedy: str) -> None:
        results.append(Finding(level, where, problem, remedy))

    package, packages, python = facts["letterhead"], facts["packages"], facts["executable"]
    in_zip = ".zip/" in package.get("location", "")  # Python cannot load native code from a zip file
    reinstall = SHIP if executor or in_zip else "pip install --force-reinstall --no-deps letterhead"
    if "location" not in package and "No module named 'letterhead'" in package["error"]:
        add("wrong", f"letterhead is not installed ({python} has none)", reinstall)
    elif "error" in package:
        add("wrong", f"letterhead cannot be imported on {facts['system']}: {package['error']}", reinstall)
    elif facts["decode"] != "right":
        add("wrong", f"a message is not decoded right: {facts['decode']}", reinstall)
    required = ("pyarrow",) if executor else ("pyarrow", "pandas", "protobuf") if packages["pyspark"] else ()
    oldest = dict(re.findall(r"(?:^|\n)([\w-]+)>=([\d.]+)", "\n".join(package.get("requires", []))))
    for name, version in packages.items():
        if version is None and name in required:
            add("wrong", f"{name} is not installed, and Spark needs it", pip_install("letterhead[spark]"))
        elif version is not None and version.startswith("cannot"):
            add("wrong", f"{name} {version}", f"pip install --force-reinstall {name}")
        elif version is not None and [] < _numbers(version) < _numbers(oldest.get(name, "")):
            add("wrong", f"{name} {version} is older than {oldest[name]}", f"pip install '{name}>={oldest[name]}'")
    if _numbers(packages["pyspark"] or "") >= [4, 2] and [17] <= _numbers(packages["pyarrow"] or "") < [18]:
        problem = f"pyspark {packages['pyspark']} needs pyarrow 18, and pyarrow is {packages['pyarrow']}"
        add("wrong", problem, "pip install 'pyarrow>=18'")
    if [] < _numbers(packages["pysail"] or "") <= [0, 7, 2] and _numbers(packages["pyspark"] or "") >= [4, 3]:
        problem = f"pysail {packages['pysail']} refuses pyspark {packages['pyspark']}: its sessions are not running"
        add("note", problem, f"to use Sail, {pip_install('letterhead[sail]')} in an environment of its own")
    if packages["pyspark"] and not executor and not sail:
        if os.path.dirname(facts["workers"] or "") != os.path.dirname(python):
            problem = f"PYSPARK_PYTHON is not this Python: workers run {facts['workers']}, and this is {python}"
            add("note", problem, f"export PYSPARK_PYTHON={python}, or the path where the workers have theirs")
        if facts["java"] is None:
            add("note", "java is not installed: only Spark Connect works", "install Java 17 or 21, or set JAVA_HOME")
    return sorted(results, key=lambda finding: finding.level != "wrong")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _rows(facts: Mapping[str, Any]) -> dict[str, str]:
    package = facts["letterhead"]
    rows = {"letterhead": package.get("version") or package["error"], "location": package.get("location", "-")}
    rows |= {name: facts[name] or "not installed" for name in ("python", "executable", "system", "decode", "java")}
    packages = facts["packages"].items()
    return rows | {
        name: version or f"not installed: {pip_install(f'letterhead[{PACKAGES[name]}]')}" for name, version in packages
    }
