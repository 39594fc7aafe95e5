"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def processor() -> str:
    """Return the name of the processor, as far as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown processor")


def features() -> list[str]:
    """Name what the processor has of what a kernel may ask for at run time; nothing where the system does not say it."""
    lines = Path("/proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", lines.read_text() if lines.exists() else "", re.MULTILINE)
    named = flags[1].split() if flags else []
    return [flag for flag in named if flag.startswith(("avx2", "bmi", "avx512", "asimd", "sve"))]


def load_text(averages: Iterable[Sequence[float]]) -> str:
    """Return the load of the last minute of each time at which load averages were taken."""
    return ", ".join(f"{last_minute:.1f}" for last_minute, *_ in averages)


def ran_on(*sources: str) -> dict[str, Any]:
    """Describe the machine and the versions for a record, and whether these files and folders match the commit."""
    git = ("git", "-C", str(ROOT))
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *sources], capture_output=True, check=False)
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "rust": first_line("rustc", "--version"),
        "java": first_line("java", "--version"),
        "commit": first_line(*git, "rev-parse", "--short", "HEAD"),
        "changed": changed.returncode == 1,
    }


def first_line(*command: str) -> str:
    """Return the first line that a command prints."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return f"{command[0]} not found"
