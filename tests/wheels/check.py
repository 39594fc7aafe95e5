"""Look at wheels from outside, and test each in environments that have nothing else.

    python tests/wheels/check.py dist dist/release --python python3.11 python3.12
    python tests/wheels/check.py dist/release --sdist

Names, tags and metadata agree; the glibc, musl or system that a name promises is what the module asks for (auditwheel); it
uses the stable interface and nothing else (abi3audit); nothing is in it that should not be; its size is bounded. Then
installed.py runs in every Python that a wheel is for. With `--sdist` the source distribution is built and tested instead,
in a directory that has no more than it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

import packaging
from elftools.elf.elffile import ELFFile
from packaging.tags import parse_tag

HERE = Path(__file__).parent

MOST_BYTES = 5_000_000
"""A wheel is sent to every worker of a cluster."""

MODULE = re.compile(r"letterhead/_native\.(abi3\.so|cpython-\d+t?-[\w-]+\.so|pyd|cp\d+t?-\w+\.pyd)")
OURS = re.compile(r"letterhead/([a-z_0-9]+/)*[a-z_0-9]+\.pyi?|letterhead/py\.typed|letterhead-[\d.]+\.dist-info/.+")
NOT_IN_SDIST = re.compile(r"(tests|benches|docs|examples|fuzz)/|.*\.(parquet|jsonl|log|so)$")
NEEDED_IN_SDIST = ("LICENSE", "NOTICE", "THIRD-PARTY.txt", "Cargo.lock", "Cargo.toml", "pyproject.toml", "README.md")


class Python(NamedTuple):
    """An interpreter that is here."""

    path: str
    version: tuple[int, int]
    has_gil: bool
    prefix: str
    tags: frozenset[str]
    """What it installs: interface and platform, as in `cp311-abi3-manylinux_2_17_x86_64`."""


def fail(problem: str) -> None:
    """Print the problem, and exit."""
    raise SystemExit(f"check: {problem}")


def run(*command: str | Path, timeout: int = 600, **options: object) -> str:
    """Run a command and give what it prints."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload]
    if done.returncode:
        fail(f"{' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def audit(wheel: Path) -> None:
    """Look at a wheel without running it."""
    name, version, interpreter, abi, platforms = wheel.stem.split("-")
    with zipfile.ZipFile(wheel) as archive:
        files = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        about = f"{name}-{version}.dist-info"
        tags = message_from_bytes(archive.read(f"{about}/WHEEL")).get_all("Tag") or []
        meta = message_from_bytes(archive.read(f"{about}/METADATA"))
        if archive.testzip() is not None:
            fail(f"{wheel.name} is damaged")
    if set(tags) != {f"{interpreter}-{abi}-{platform}" for platform in platforms.split(".")}:
        fail(f"{wheel.name} says inside that it is {tags}")
    is_stable = (interpreter, abi) == ("cp311", "abi3")
    if not is_stable and not (interpreter + "t" == abi and int(interpreter[3:]) >= 14):
        fail(f"{wheel.name} is for {interpreter} with {abi}: neither abi3 from 3.11 on nor a free-threaded Python")
    if (meta["Name"], meta["Version"], meta["License-Expression"]) != ("letterhead", version, "Apache-2.0"):
        fail(f"{wheel.name} has the metadata of {meta['Name']} {meta['Version']}, {meta['License-Expression']}")
    strange = [file for file in files if not OURS.fullmatch(file) and not MODULE.fullmatch(file)]
    if strange or sum(1 for file in files if MODULE.fullmatch(file)) != 1:
        fail(f"{wheel.name} should have one module and Python files, and has {strange}")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        fail(f"{wheel.name} has {size:,} bytes: more than {MOST_BYTES:,}")
    reported = [f"{size:,} bytes of {MOST_BYTES:,}"]
    if is_stable:
        run(sys.executable, "-m", "abi3audit", "--strict", wheel)
        reported.append("nothing but abi3 of 3.11")
    if "musllinux" in platforms:
        reported.append(f"needs {', '.join(libraries_of(wheel, platforms))}")
    elif "linux" in platforms:
        reported.append(f"auditwheel: {platform_of(wheel, platforms)}")
    print(f"{wheel.name}\n  {'; '.join(reported)}")


def libraries_of(wheel: Path, platforms: str) -> list[str]:
    """Find what a module for musl asks its system for, which has to be musl alone.

    Linked by zig it asks for ``libc.so``, as programs of musl do, and musl's loader takes that for itself. auditwheel knows
    only the name that Alpine gives it, and looks for the library on the system it runs on.
    """
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        module = next(name for name in archive.namelist() if MODULE.fullmatch(name))
        with open(archive.extract(module, scratch), "rb") as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
    machine = platforms.rpartition("musllinux_1_2_")[2]
    if not set(needed) <= {"libc.so", f"libc.musl-{machine}.so.1"}:
        fail(f"{wheel.name} needs {', '.join(needed)}, which musl does not bring")
    return needed


def platform_of(wheel: Path, platforms: str) -> str:
    """Find the oldest system that a module runs on, which has to be the one in its name."""
    printed = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).split())
    match = re.search(r'following platform tag: "(\w+)"', printed)
    if match is None:
        fail(f"auditwheel says of {wheel.name}: {printed}")
        raise AssertionError
    if match[1] not in platforms.split("."):
        fail(f"{wheel.name} runs on {match[1]}, and its name says {platforms}")
    return match[1]


def pythons(names: list[str]) -> list[Python]:
    """Find the interpreters that are here, each once; those of pyenv too."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = [str(path) for path in sorted(root.glob("3.*/bin/python"))]
    # The interpreter itself computes its tags, with the package of this environment.
    ask = (
        f"import sys, sysconfig; sys.path.append({str(Path(packaging.__file__).parents[1])!r})\n"
        "from packaging.tags import sys_tags\n"
        "print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)\n"
        "print(sys.base_prefix)\n"
        "print(*sys_tags())"
    )
    pythons_by_prefix: dict[str, Python] = {}
    for name in dict.fromkeys([*names, *kept]):
        path = shutil.which(name)
        reported = path and subprocess.run([path, "-I", "-c", ask], capture_output=True, text=True, timeout=300)
        if not reported or reported.returncode:
            continue
        numbers, prefix, tags = reported.stdout.strip().split("\n")
        major, minor, is_free = (int(number) for number in numbers.split())
        if (major, minor) >= (3, 11):
            python = Python(str(path), (major, minor), not is_free, prefix, frozenset(tags.split()))
            pythons_by_prefix.setdefault(prefix, python)
    return list(pythons_by_prefix.values())


def fits(wheel: Path, python: Python) -> bool:
    """Return whether a Python can install a wheel: it has the interface, the system and the C library that it is for."""
    _, _, tags = wheel.stem.split("-", 2)
    return any(str(tag) in python.tags for tag in parse_tag(tags))


def try_out(archive: Path, python: Python, directory: Path, *options: str) -> None:
    """Install a wheel or sources into a new environment and run installed.py there, from outside this project."""
    environment = directory / "environment"
    run(python.path, "-m", "venv", "--without-pip", environment)
    inside = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    started = time.monotonic()
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        inside,
        "install",
        "--quiet",
        "--no-deps",
        *options,
        archive,
        cwd=directory,
        timeout=3600,
    )
    installed = time.monotonic()
    run(inside, "-I", HERE / "installed.py", cwd=directory)
    version = ".".join(map(str, python.version)) + ("" if python.has_gil else "t")
    print(
        f"  Python {version} of {python.prefix}: installed in {installed - started:.0f} s, tested in {time.monotonic() - installed:.0f} s"
    )


def look_at_sources(sdist: Path) -> None:
    """See that a source distribution has what it needs, and no data in bulk."""
    with tarfile.open(sdist) as archive:
        files = [member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()]
    missing = [name for name in NEEDED_IN_SDIST if name not in files]
    bulk = [name for name in files if NOT_IN_SDIST.match(name)]
    if missing or bulk:
        fail(f"{sdist.name} lacks {missing} and should not have {bulk[:5]}")
    print(f"{sdist.name}\n  {sdist.stat().st_size / 1024:.0f} KiB, {len(files)} files")


def main() -> int:
    """Check what is in a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directories", type=Path, nargs="+")
    parser.add_argument("--python", nargs="*", default=[], metavar="NAME", help="interpreters beside this one")
    parser.add_argument("--sdist", action="store_true", help="build and test the source distribution instead")
    options = parser.parse_args()
    installed = pythons([sys.executable, *options.python])
    pattern = "letterhead-*.tar.gz" if options.sdist else "letterhead-*.whl"
    archives = [archive for directory in options.directories for archive in sorted(directory.resolve().glob(pattern))]
    if not archives:
        fail(f"no {pattern} in {', '.join(map(str, options.directories))}")
    for archive in archives:
        if options.sdist:
            look_at_sources(archive)
            with tempfile.TemporaryDirectory() as directory:
                try_out(archive, installed[0], Path(directory))
            continue
        audit(archive)
        fitting = [python for python in installed if fits(archive, python)]
        for python in fitting:
            with tempfile.TemporaryDirectory() as directory:
                try_out(archive, python, Path(directory), "--no-index")
        if not fitting:
            print("  built, never run: no Python here installs it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
