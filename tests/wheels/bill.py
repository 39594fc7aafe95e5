"""Write bills of materials (CycloneDX) beside the wheels of a directory.

That of the crates is the one that maturin put into the wheel, byte for byte. What the extras bring is not in a wheel and
depends on when it is installed: its bill is of this environment.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Write them, and say where."""
    directory = Path(sys.argv[1])
    wheels = sorted(directory.glob("letterhead-*.whl"))
    if not wheels:
        print(f"no wheel in {directory}: tools/release wheels", file=sys.stderr)
        return 1
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            [name] = [
                name for name in archive.namelist() if name.endswith(".dist-info/sboms/letterhead.cyclonedx.json")
            ]
            written = directory / f"{wheel.stem}.cdx.json"
            written.write_bytes(archive.read(name))
        print(written)
    environment = directory / "environment.cdx.json"
    program = [
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
        "--pyproject",
        str(ROOT / "pyproject.toml"),
    ]
    subprocess.run(
        [sys.executable, *program, "--output-file", str(environment), sys.executable], check=True, timeout=300
    )
    print(environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
