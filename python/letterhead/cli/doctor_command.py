"""`letterhead doctor`."""

from __future__ import annotations

from letterhead.cli.doctor import run_doctor
from letterhead.cli.options import Json

__all__ = ["doctor_command"]


def doctor_command(json: Json = False) -> int:
    """Show versions of installed components, what is missing, and how to install it.

    The exit code is 1 if there is a problem; notes do not count as problems.
    `letterhead.spark.doctor(spark)` checks the executors of a Spark session.

    \b
    Examples:
      letterhead doctor
      letterhead doctor --json
    """
    return run_doctor(json=json)
