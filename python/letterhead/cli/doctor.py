"""``letterhead doctor``: what is here, what is wrong with it, and how to mend it."""

from __future__ import annotations

import sys

from letterhead import doctor
from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, OK


def run_doctor(*, json: bool) -> int:
    """Print the report; the exit code says whether something is wrong."""
    seen = doctor.report()
    if json:
        sys.stdout.write(seen.to_json() + "\n")
    else:
        sys.stdout.write("\n".join(map(printable, str(seen).split("\n"))) + "\n")
        if seen.places[0].facts["packages"]["pyspark"] is not None:
            sys.stdout.write("\nThe executors of a Spark session are asked by letterhead.spark.doctor(spark).\n")
    return OK if seen.ok else FAULTS
