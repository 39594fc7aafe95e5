"""`letterhead doctor`, which works without typer, and without a compiled core that can be loaded."""

from __future__ import annotations

from letterhead import _doctor
from letterhead._formatting import printable


def run_doctor(*, json: bool) -> int:
    """Print the versions of installed components and their problems; return 1 if there are problems."""
    report = _doctor.report()
    print(report.to_json() if json else "\n".join(map(printable, str(report).split("\n"))))
    return 0 if report.ok else 1
