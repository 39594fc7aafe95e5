"""Ship letterhead to workers that have none, as the documentation says: `python shipped.py settings|job|connect|classic SAMPLES`.

It is run in a directory that has the wheel, and prints what the executors said before and after as JSON.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from pathlib import Path
from typing import Any

import letterhead as lh
from letterhead import spark as lhs
from tests.helpers import pages
from tests.spark import connect, other_sessions

PAGE = "docs/how-to/run-on-a-cluster.md"
HEADERS = [("k", lh.Int8(7)), ("é", lh.String("x"))]


def recipe(info: str, **names: Any) -> dict[str, Any]:
    """Run the block of the documentation that is marked so; give the names that it made."""
    pages.run(PAGE, names, info)
    return names


def read(spark: Any) -> Any:
    """Read a header on a worker: what it has, or the first line that says what went wrong."""
    frame = spark.createDataFrame([(lh.encode(HEADERS, "iggy"),)], "value binary")
    try:
        return lhs.select_headers(frame, {"k": "int8", "é": "string"}, column="value", format="iggy").first().asDict()
    except Exception as error:
        return next((line.strip() for line in str(error).splitlines() if "ModuleNotFound" in line), str(error))


def said(spark: Any) -> dict[str, Any]:
    """Return what the executors say."""
    seen = lhs.doctor(spark)
    facts = [facts["letterhead"] for facts in seen.places.values()]
    return {
        "ok": seen.ok,
        "places": list(seen.places),
        "wrong": [
            (finding.where.partition(" (")[0], finding.problem) for finding in seen.findings if finding.level == "wrong"
        ],
        "of the driver": [finding.get("location") == facts[0]["location"] for finding in facts],
        "read": read(spark),
    }


def run(type: str, samples: Path) -> None:
    from pyspark.sql import SparkSession

    before = None
    if type == "settings":
        spark = recipe("python cluster")["spark"]
    elif type == "job":
        # The options of the command line do the shipping.
        spark = SparkSession.builder.getOrCreate()
    else:
        builder = SparkSession.builder
        spark = connect.local_session(builder) if type == "connect" else builder.getOrCreate()
        before = said(spark)
        recipe(f"python {type}", spark=spark, archive=recipe("python pack")["archive"])
    recipe("python doctor", spark=spark)
    after = said(spark)
    if type == "settings":
        other_sessions.check(spark, samples)
    print(json.dumps({"before": before, "after": after}))
    spark.stop()


if __name__ == "__main__":
    # Before the test gives up on it.
    faulthandler.dump_traceback_later(510, exit=True)
    run(sys.argv[1], Path(sys.argv[2]))
