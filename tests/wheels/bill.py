"""Write bills of materials (CycloneDX) beside the wheels of a directory.

    python tests/wheels/bill.py dist/release
    python tests/wheels/bill.py dist/release --environment

That of the crates is the one that maturin put into the wheel, byte for byte. What the extras bring is not in a wheel and
depends on when and where it is installed: `--environment` writes the bill of this one, with the platform in its name, since
bills of several platforms go into one directory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def crates(wheel: Path) -> Path:
    """Write the bill that a wheel contains beside it."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/sboms/letterhead.cyclonedx.json")]
        written = wheel.parent / f"{wheel.stem}.cdx.json"
        written.write_bytes(archive.read(name))
    return written


def environment(directory: Path) -> Path:
    """Write the bill of the packages in this environment."""
    written = directory / f"environment-{sysconfig.get_platform().replace('-', '_')}.cdx.json"
    project = ("--pyproject", str(ROOT / "pyproject.toml"))
    program = ["-m", "cyclonedx_py", "environment", "--output-reproducible", *project, "--output-file", str(written)]
    subprocess.run([sys.executable, *program, sys.executable], check=True, timeout=300)
    return written


def main() -> int:
    """Write them, and print their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--environment", action="store_true", help="also the packages of this environment")
    options = parser.parse_args()
    wheels = sorted(options.directory.glob("letterhead-*.whl"))
    if not wheels:
        print(f"no wheel in {options.directory}: tools/release wheels", file=sys.stderr)
        return 1
    for wheel in wheels:
        print(crates(wheel))
    if options.environment:
        print(environment(options.directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
