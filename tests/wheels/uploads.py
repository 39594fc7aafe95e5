"""Check the files of a release before they are signed and uploaded, with nothing but Python.

    python tests/wheels/uploads.py dist/release v0.1.0

All wheels and the source distribution of the version of the tag are there, and no other file of these types. Their Python
files and sources are those of this checkout, and their lists of checksums hold.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

from paths import ROOT, paths_in

STABLE = "cp311-abi3-"
FREE_THREADED = r"cp(\d+)-cp\1t-"
PLATFORMS = (
    STABLE + r"manylinux.*_x86_64", STABLE + r"manylinux.*_aarch64", STABLE + r"musllinux_1_2_x86_64",
    STABLE + r"musllinux_1_2_aarch64", STABLE + r"macosx_.*_arm64", STABLE + r"macosx_.*_x86_64", STABLE + r"win_amd64",
    FREE_THREADED + r"manylinux.*_x86_64", FREE_THREADED + r"macosx_.*_arm64", FREE_THREADED + r"win_amd64",
)  # fmt: skip
"""Wheels of a release."""

MODULE = re.compile(r"letterhead/_native\.[\w.-]+")
WRITTEN_BY_BUILD = ("PKG-INFO", "Cargo.toml", "pyproject.toml")
"""Files of a source distribution that maturin may write anew."""


def problems_of_names(names: list[str], version: str) -> list[str]:
    """Compare names of files with those of a release."""
    left = set(names) - {f"letterhead-{version}.tar.gz"}
    problems = [] if len(left) < len(names) else [f"letterhead-{version}.tar.gz is missing"]
    for platform in PLATFORMS:
        matching = {name for name in left if re.fullmatch(rf"letterhead-{re.escape(version)}-{platform}\.whl", name)}
        if len(matching) != 1:
            problems.append(f"{len(matching)} wheels for {platform}")
        left -= matching
    return problems + [f"{name} is not part of the release" for name in sorted(left)]


def problems_of_wheel(wheel: Path, version: str) -> list[str]:
    """Compare a wheel with its own list of checksums, and its Python files with this checkout."""
    about = f"letterhead-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    problems = []
    record = {row[0]: row[1] for row in csv.reader(files.get(f"{about}/RECORD", b"").decode().splitlines())}
    for name, data in files.items():
        digest = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        if name != f"{about}/RECORD" and record.get(name) != digest:
            problems.append(f"{name} has another checksum than RECORD")
        if not name.startswith(f"{about}/") and not MODULE.fullmatch(name):
            source = ROOT / "python" / name
            if not source.is_file() or source.read_bytes().replace(b"\r\n", b"\n") != data.replace(b"\r\n", b"\n"):
                problems.append(f"{name} is not that of this checkout")
    problems += [f"{name} is missing" for name in record if name not in files]
    sources = {f"letterhead/{path.relative_to(ROOT / 'python/letterhead').as_posix()}"
               for path in (ROOT / "python/letterhead").rglob("*.py")}  # fmt: skip
    problems += [f"{name} is missing" for name in sorted(sources - files.keys())]
    if sum(1 for name in files if MODULE.fullmatch(name) and not name.endswith(".pyi")) != 1:
        problems.append("it has not exactly one compiled module")
    return problems + problems_of_metadata(files.get(f"{about}/METADATA", b""), version) + paths_in(wheel)


def problems_of_sources(sdist: Path, version: str) -> list[str]:
    """Compare a source distribution with this checkout."""
    problems = []
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            top, _, name = member.name.partition("/")
            if top != f"letterhead-{version}" or ".." in name or not (member.isfile() or member.isdir()):
                problems.append(f"{member.name} is no file of letterhead-{version}")
                continue
            content = archive.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            data = content.read()
            if name == "PKG-INFO":
                problems += problems_of_metadata(data, version)
            if name in WRITTEN_BY_BUILD:
                continue
            source = ROOT / name
            if not source.is_file() or source.read_bytes() != data:
                problems.append(f"{name} is not that of this checkout")
    return problems


def problems_of_metadata(data: bytes, version: str) -> list[str]:
    """Check name, version and licence."""
    meta = message_from_bytes(data)
    stated = (meta["Name"], meta["Version"], meta["License-Expression"])
    return [] if stated == ("letterhead", version, "Apache-2.0") else [f"the metadata has {stated}"]


def main() -> int:
    """Check a directory against a tag."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("tag", help="v and the version")
    options = parser.parse_args()
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    files = sorted([*options.directory.glob("*.whl"), *options.directory.glob("*.tar.gz")])
    problems = [] if options.tag == f"v{version}" else [f"the tag is {options.tag}, and the version {version}"]
    problems += problems_of_names([file.name for file in files], version)
    for file in files:
        check = problems_of_wheel if file.suffix == ".whl" else problems_of_sources
        problems += [f"{file.name}: {problem}" for problem in check(file, version)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{len(files)} files of {options.tag} are as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
