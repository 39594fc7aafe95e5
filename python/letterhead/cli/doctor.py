"""``letterhead doctor``: versions of installed components, what is missing, and how to install it."""

from __future__ import annotations

from letterhead import doctor
from letterhead._formatting import printable
from letterhead.cli.exits import BAD_DATA, OK


def run_doctor(*, json: bool) -> int:
    """Print the report; the exit code tells whether there are problems."""
    report = doctor.report()
    print(report.to_json() if json else "\n".join(map(printable, str(report).split("\n"))))
    return OK if report.ok else BAD_DATA
