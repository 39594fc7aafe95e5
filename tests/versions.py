"""Versions of other projects, from docs/versions.toml, and where the Makefile puts what it builds for them.

LETTERHEAD_KAFKA names another version of Kafka than the reference, such as 4.3.1: `LETTERHEAD_KAFKA=4.3.1 pytest tests/state`
needs `make target/jvm-tests-4.3.1/.built`.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSIONS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "docs" / "versions.toml").read_text(encoding="utf-8"))
REFERENCE: str = VERSIONS["kafka"]["reference"]
KAFKA = os.environ.get("LETTERHEAD_KAFKA") or REFERENCE
"""The version of Kafka that these tests run with."""


def built(name: str, version: str = KAFKA) -> Path:
    """Return the directory of Java programs that were built for a version of Kafka: ``jvm-tests`` or ``kafka``."""
    return ROOT / "target" / (name if version == REFERENCE else f"{name}-{version}")


def check_built(directory: Path) -> None:
    """Raise RuntimeError if Java programs have not been built."""
    if not (directory / ".built").exists():
        command = f"make {directory.relative_to(ROOT)}/.built"
        raise RuntimeError(f"the Java programs of the tests are missing: run `{command}` (it needs JDK 17 and Maven)")
