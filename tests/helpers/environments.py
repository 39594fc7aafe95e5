"""Environments of Python that lack something, and wheels to put there: nothing is downloaded for either."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import letterhead

PACKAGE = Path(letterhead.__file__).parent
ROOT = Path(__file__).parents[2]


def environment(directory: Path, keep: Callable[[str], bool]) -> Path:
    """Make an environment with some of the packages of this one, letterhead never; give its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=300)
    for entry in Path(sysconfig.get_path("platlib")).iterdir():
        if entry.suffix != ".pth" and "letterhead" not in entry.name and keep(entry.name.lower().lstrip("_")):
            (_packages(directory) / entry.name).symlink_to(entry)
    return directory / "bin" / "python"


def install(wheel: Path, directory: Path) -> None:
    """Install a wheel into an environment: one without scripts and data is just unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(_packages(directory))


def clean(**more: str) -> dict[str, str]:
    """Return the variables for a process that finds nothing by an accident of where the tests were started."""
    ours = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in ours} | more


@contextlib.contextmanager
def swept() -> Iterator[None]:
    """Remove what a ``local-cluster`` leaves: Spark puts its work into its own directory, whatever it is told."""
    import pyspark

    work = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent)) / "work"
    before = set(work.iterdir()) if work.exists() else set()
    try:
        yield
    finally:
        for directory in (set(work.iterdir()) if work.exists() else set()) - before:
            shutil.rmtree(directory, ignore_errors=True)


def wheel(directory: Path) -> Path:
    """Return the wheel that was built of this package; of an editable install, one that is packed now."""
    for built in (ROOT / "dist").glob("letterhead-*.whl"):
        if _code(built) == {name: data for name, data in _files().items() if _is_code(name)}:
            return Path(shutil.copy(built, directory))
    return packed(directory)


def packed(directory: Path, *, version: str | None = None, tag: str | None = None) -> Path:
    """Pack this package as a wheel, of another version or for another system if so asked."""
    distribution = importlib.metadata.distribution("letterhead")
    version = version or distribution.version
    metadata = re.sub(r"(?m)^Version: .*", f"Version: {version}", distribution.read_text("METADATA") or "", count=1)
    about = distribution.read_text("WHEEL") or ""
    tag = tag or re.findall(r"(?m)^Tag: (\S+)", about)[0]
    info = f"letterhead-{version}.dist-info"
    files = _files() | {
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": re.sub(r"(?m)^Tag: .*", f"Tag: {tag}", about).encode(),
    }
    record = io.StringIO()
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        csv.writer(record, lineterminator="\n").writerow([name, f"sha256={digest}", len(data)])
    record.write(f"{info}/RECORD,,\n")
    result = directory / f"letterhead-{version}-{tag}.whl"
    with zipfile.ZipFile(result, "w") as archive:
        for name, data in {**files, f"{info}/RECORD": record.getvalue().encode()}.items():
            archive.writestr(name, data)
    return result


def _packages(directory: Path) -> Path:
    return next(directory.glob("lib/python*/site-packages"))


def _files() -> dict[str, bytes]:
    return {
        f"letterhead/{file.relative_to(PACKAGE).as_posix()}": file.read_bytes()
        for file in sorted(PACKAGE.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def _code(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if name.startswith("letterhead/") and _is_code(name)
        }  # fmt: skip


def _is_code(name: str) -> bool:
    return name.endswith((".py", ".so"))
