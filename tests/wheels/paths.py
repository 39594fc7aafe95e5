"""Remove paths of the machine from wheels that it built, and refuse wheels that have any.

    python tests/wheels/paths.py dist/release

Only the bill of materials that maturin writes is changed: it names the directory of the package. The compiler is told to
leave out paths by `tools/release`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BILL = re.compile(r"letterhead-[\d.]+\.dist-info/sboms/.+\.json")
RECORD = re.compile(r"letterhead-[\d.]+\.dist-info/RECORD")


def machine_paths() -> re.Pattern[bytes]:
    """Match paths of this machine, and the directory of crates of any."""
    places = [ROOT, Path.home()]
    plain = {str(place) for place in places} | {place.as_posix() for place in places}
    known = [re.escape(place.encode()) for place in sorted(plain, key=len, reverse=True) if len(place) > 1]
    return re.compile(rb"|".join([*known, rb"[/\\]\.cargo[/\\]registry", rb"file:///(?!letterhead)[\w/.:\\-]+"]))


def relocate(wheel: Path) -> None:
    """Replace the directory of the package in the bill of materials, and the checksum of the bill."""
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry: archive.read(entry) for entry in archive.infolist()}
    replaced = {}
    for entry, data in entries.items():
        if BILL.fullmatch(entry.filename):
            changed = data.replace(ROOT.as_uri().encode(), b"file:///letterhead")
            if changed != data:
                replaced[entry.filename] = changed
    if not replaced:
        return
    written = wheel.with_suffix(".new")
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, data in entries.items():
            if RECORD.fullmatch(entry.filename):
                data = recorded(data, replaced)
            archive.writestr(entry, replaced.get(entry.filename, data))
    written.replace(wheel)


def recorded(record: bytes, replaced: dict[str, bytes]) -> bytes:
    """Return the list of files of a wheel with the checksums of files that were replaced."""
    lines = record.decode().splitlines()
    for index, line in enumerate(lines):
        name = line.partition(",")[0]
        if name in replaced:
            data = replaced[name]
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            lines[index] = f"{name},sha256={digest},{len(data)}"
    return ("\n".join(lines) + "\n").encode()


def paths_in(wheel: Path) -> list[str]:
    """Return files of a wheel with paths of a machine, and the paths."""
    pattern = machine_paths()
    with zipfile.ZipFile(wheel) as archive:
        paths_of = {name: {*pattern.findall(archive.read(name))} for name in archive.namelist()}
    return [f"{name}: {path.decode(errors='replace')}" for name, paths in paths_of.items() for path in sorted(paths)]


def main() -> int:
    """Relocate and check the wheels of a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    wheels = sorted(parser.parse_args().directory.glob("letterhead-*.whl"))
    for wheel in wheels:
        relocate(wheel)
        paths = paths_in(wheel)
        if paths:
            print(f"{wheel.name} has paths of this machine:", *paths[:10], sep="\n  ", file=sys.stderr)
            return 1
        print(f"{wheel.name}: no path of this machine")
    return 0 if wheels else 1


if __name__ == "__main__":
    sys.exit(main())
