"""Check that the licences of the packages in the extras are among those below.

None of them is in a wheel of letterhead: pip installs them beside it. But who asks for an extra gets what it brings, and
should not be surprised. Tools of development are not looked at.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

ALLOWED = re.compile(
    r"(Apache([ -]2\.0| Software License)?|(\d-Clause )?BSD( License)?|BSD-\d-Clause( License)?|MIT(-0| License)?|0BSD|Zlib"
    r"|CC0-1\.0|ISC( License \(ISCL\))?|PSF-2\.0|Python Software Foundation License|MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\))"
)
"""Of several, each."""


def brought(requested: list[str], seen: set[str]) -> set[str]:
    """Follow what is asked for, in this environment. What an extra of a package would bring is asked for by nobody."""
    for line in requested:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if name is None or "extra ==" in line:
            continue
        plain = name[0].lower().replace("_", "-")
        try:
            needs = requires(plain)
        except PackageNotFoundError:
            continue  # of another system or Python
        if plain not in seen:
            seen.add(plain)
            brought(needs or [], seen)
    return seen


def main() -> int:
    """Name the packages whose licences are others."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    packages = brought([line for lines in extras.values() for line in lines], set()) - {"letterhead"}
    program = [sys.executable, "-m", "piplicenses", "--from=mixed", "--format=json", "--packages", *sorted(packages)]
    rows = json.loads(subprocess.run(program, check=True, capture_output=True, text=True, timeout=300).stdout)
    reported = {row["Name"].lower().replace("_", "-"): row["License"] for row in rows}
    bad = {name: reported.get(name, "none found") for name in packages}
    bad = {
        name: licence
        for name, licence in bad.items()
        if not all(ALLOWED.fullmatch(part.strip()) for part in re.split(r" AND | OR |;", licence))
    }
    for name, licence in sorted(bad.items()):
        print(f"{name}: {licence}", file=sys.stderr)
    print(f"licences of {len(packages)} packages that the extras bring: {len(packages) - len(bad)} as expected")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
