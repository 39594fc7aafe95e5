"""Ask the driver and every executor what they have: ``lhs.doctor(spark)``."""

from __future__ import annotations

import json
import pickle
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import letterhead.doctor
from letterhead.doctor import Finding, Report, examine, findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["doctor"]

Facts: TypeAlias = dict[str, Any]

SETTINGS = (
    "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.pythonUDF.arrow.enabled",
    "spark.sql.execution.pyspark.python",
    "spark.sql.session.timeZone",
)

ROUNDS = 5
"""How often executors are asked of which some did not answer."""

HOLD = 0.3
"""Seconds for which a task keeps its slot, so that the next one goes to another executor."""


def doctor(spark: SparkSession, *, executors: int | None = None) -> Report:
    """Ask the driver and every executor what they have, and say what is wrong and how to mend it.

    Executors are asked by a job of many short tasks, in plain Python that needs neither letterhead nor pyarrow there.

    Parameters
    ----------
    spark : SparkSession
        A session, classic or of Spark Connect.
    executors : int, optional
        How many have to answer. A classic session knows how many there are; one of Spark Connect does not, and is
        content with those that answer.

    Returns
    -------
    Report
        A table when it is printed, ``.ok``, ``.findings``, ``.to_json()``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> seen = lhs.doctor(spark)
    >>> list(seen.places), seen.ok
    (['driver', '1 executor'], True)
    """
    driver = examine()
    found = findings(driver, "driver")
    expected = _executors(spark) if executors is None else executors
    asked: dict[str, Facts] = {}
    try:
        asked = _ask(spark, expected)
    except Exception as error:
        found.append(_not_asked(error))
    else:
        if expected is not None and len(asked) < expected:
            what = f"{len(asked)} of {expected} executors answered; the others were busy, or are gone"
            found.append(Finding("note", "executors", what, "ask again when they are free"))
    places = {"driver": driver}
    for names, facts in _alike(asked):
        name = f"{len(names)} executor{'s' * (len(names) > 1)}"
        where = f"{name} ({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
        places[name if name not in places else where] = facts
        found += findings(facts, where, executor=True)
        found += _differences(driver, facts, where)
    settings = _settings(spark)
    found += _judge_session(spark, driver, settings)
    return Report(places, settings, sorted(found, key=lambda each: each.level != "wrong"))


def _executors(spark: SparkSession) -> int | None:
    """Count the executors of a classic session; in local mode the driver is the only one."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    # The driver is one of them, and does no work where there are others.
    known = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos())
    return max(known - 1, 1)


def _slots(spark: SparkSession) -> int:
    if hasattr(spark, "_jsparkSession"):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F

    # What a client is not told: a range has as many partitions as there are slots.
    return int(spark.range(100_000).select(F.spark_partition_id()).distinct().count())


def _ask(spark: SparkSession, expected: int | None) -> dict[str, Facts]:
    """Ask until all have answered; give what each said."""
    from pyspark.sql import functions as F

    # Not an Arrow UDF, as a worker may have no pyarrow to run one with. Spark 3.5 has it under the same name.
    answer = F.udf(_question(), "string", useArrow=False).asNondeterministic()
    tasks = 2 * _slots(spark)
    asked: dict[str, Facts] = {}
    for _ in range(1 if expected is None else ROUNDS):
        for row in spark.range(0, tasks, 1, tasks).select(answer("id").alias("said")).collect():
            said = json.loads(row.said)
            asked[said["id"]] = said["facts"]
        if expected is None or len(asked) >= expected:
            break
    return asked


def _question() -> Any:
    """Make a function that names nothing of letterhead: what it calls travels whole, not by its name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(letterhead.doctor)
    try:
        carried, hold = cloudpickle.dumps(examine), HOLD
    finally:
        cloudpickle.unregister_pickle_by_value(letterhead.doctor)

    def answer(_: int) -> str:
        import os

        facts = pickle.loads(carried)()
        time.sleep(hold)
        # The process above a worker belongs to its executor.
        return json.dumps({"id": f"{facts['host']} {os.getppid()}", "facts": facts})

    return answer


def _not_asked(error: Exception) -> Finding:
    said = str(error)
    if "PYTHON_VERSION_MISMATCH" in said:
        line = next(line for line in said.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        what = f"the workers run another Python than the driver: {line.partition('] ')[2]}"
    elif "Cannot run program" in said:
        program = said.partition("Cannot run program")[2].splitlines()[0]
        what = f"the workers' Python does not start: Cannot run program{program}"
    else:
        what = f"the executors could not be asked: {type(error).__name__}: {said.strip().splitlines()[0]}"
    mend = "set PYSPARK_PYTHON (or spark.pyspark.python) to a Python of the driver's version that the workers have"
    return Finding("wrong", "executors", what, mend)


def _alike(asked: Mapping[str, Facts]) -> Iterable[tuple[list[str], Facts]]:
    """Put together executors that differ by their host only."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, facts in asked.items():
        # An archive is unpacked in another directory on every executor.
        groups[json.dumps({**facts, "host": "", "letterhead": {**facts["letterhead"], "location": ""}})].append(name)
    for names in groups.values():
        yield sorted(names), asked[names[0]]


def _differences(driver: Facts, facts: Facts, where: str) -> Iterable[Finding]:
    ours, theirs = driver["letterhead"], facts["letterhead"]
    if "error" in ours or "error" in theirs:
        return
    ship = f"ship the executors the wheel that the driver has: {ours['version']}"
    if ours["version"] != theirs["version"]:
        what = f"letterhead {theirs['version']} from {theirs['location']}, and the driver has {ours['version']}"
        yield Finding("wrong", where, what, ship)


def _settings(spark: SparkSession) -> dict[str, str]:
    settings = {}
    for name in SETTINGS:
        try:
            value = spark.conf.get(name)
        except Exception:
            # One that this version of Spark does not have.
            continue
        if value is not None:
            settings[name] = str(value)
    return settings


def _judge_session(spark: SparkSession, driver: Facts, settings: Mapping[str, str]) -> Iterable[Finding]:
    client, server = driver["packages"]["pyspark"] or "", spark.version
    if client.split(".")[:2] != server.split(".")[:2]:
        what = f"pyspark {client} speaks with Spark {server}"
        yield Finding("wrong", "driver", what, f"pip install 'pyspark=={server}'")
    rows = int(settings.get("spark.sql.execution.arrow.maxRecordsPerBatch", "10000"))
    if rows <= 0 or rows < 1000:
        limit = "no limit of rows, so that a batch can be as large as a partition" if rows <= 0 else "small batches"
        what = f"spark.sql.execution.arrow.maxRecordsPerBatch={rows}: {limit}"
        yield Finding("note", "session", what, "leave it at its default of 10,000")
