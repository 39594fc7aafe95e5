"""``letterhead doctor``: versions of installed components, what is missing, and how to install it."""

from __future__ import annotations

from letterhead import doctor
from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, OK


def run_doctor(*, json: bool) -> int:
    """Print the report; the exit code says whether something is wrong."""
    seen = doctor.report()
    print(seen.to_json() if json else "\n".join(map(printable, str(seen).split("\n"))))
    return OK if seen.ok else FAULTS
