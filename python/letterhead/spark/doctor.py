"""Check the installation on the driver and on every executor: :func:`doctor`."""

from __future__ import annotations

import json
import pickle
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import letterhead._doctor
from letterhead._doctor import Finding, Report, examine, findings
from letterhead.spark.sail import is_sail

__all__ = ["doctor"]

Facts: TypeAlias = dict[str, Any]

ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"

SETTINGS = (
    "spark.sql.execution.arrow.pyspark.enabled",
    ROWS_PER_BATCH,
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.pythonUDF.arrow.enabled",
    "spark.sql.execution.pyspark.python",
    "spark.sql.session.timeZone",
)

NEED_NOTHING = (
    "header, header_columns, select_headers(engine='spark'), edit_headers and traceparent are expressions of Spark on lists of "
    "headers, and need nothing there"
)

ROUNDS = 5
"""Maximum number of times that the job runs until all executors have responded."""

HOLD = 0.3
"""Seconds for which a task occupies its slot, to make the next task run on another executor."""


def doctor(spark: SparkSession, *, executors: int | None = None) -> Report:
    """Check the installation on the driver and on every executor, and report errors with their remedies.

    A job of many short tasks runs on the executors. It is plain Python and needs neither letterhead nor pyarrow there.

    Parameters
    ----------
    spark : SparkSession
        A session, classic or of Spark Connect.
    executors : int, optional
        Number of executors that must respond. By default all executors of a classic session; Spark Connect cannot count
        them, so all executors that respond are checked.

    Returns
    -------
    Report
        Printed as a table; with ``.ok``, ``.findings`` and ``.to_json()``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> seen = lhs.doctor(spark)
    >>> list(seen.places), seen.ok
    (['driver', '1 executor'], True)
    """
    driver = examine()
    all_findings = findings(driver, "driver", sail=is_sail(spark))
    expected = _executors(spark) if executors is None else executors
    answers: dict[str, Facts] = {}
    try:
        answers = _answers(spark, expected)
    except Exception as error:
        all_findings.append(_job_failed(error))
    else:
        if expected is not None and len(answers) < expected:
            problem = f"{len(answers)} of {expected} executors answered; the others were busy, or are gone"
            all_findings.append(Finding("note", "executors", problem, "run it again when they are free"))
    places = {"driver": driver}
    for names, facts in _groups(answers):
        name = f"{len(names)} executor{'s' * (len(names) > 1)}"
        where = f"{name} ({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
        places[name if name not in places else where] = facts
        all_findings += findings(facts, where, executor=True)
        all_findings += _judge_versions(driver, facts, where)
    if not is_sail(spark) and any(finding.level == "wrong" and "executor" in finding.where for finding in all_findings):
        all_findings.append(Finding("note", "executors", NEED_NOTHING, "call them until the executors are repaired"))
    settings = _settings(spark)
    all_findings += _judge_session(spark, driver, settings)
    return Report(places, settings, sorted(all_findings, key=lambda finding: finding.level != "wrong"))


def _executors(spark: SparkSession) -> int | None:
    """Count the executors of a classic session; in local mode the driver is the only one."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    # The list contains the driver, which runs no tasks if there are executors.
    known = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos())
    return max(known - 1, 1)


def _slots(spark: SparkSession) -> int:
    if hasattr(spark, "_jsparkSession"):
        return int(spark.sparkContext.defaultParallelism)
    # A Connect client cannot query the number of slots, but a range has one partition per slot.
    return int(spark.range(100_000).select(F.spark_partition_id()).distinct().count())


def _answers(spark: SparkSession, expected: int | None) -> dict[str, Facts]:
    """Run the job until all executors have responded; return the facts about each executor."""
    # An Arrow UDF is not used, because a worker may lack pyarrow. `useArrow` exists since Spark 3.5.
    answer = F.udf(_answer_function(), "string", useArrow=False).asNondeterministic()
    tasks = 2 * _slots(spark)
    answers: dict[str, Facts] = {}
    for _ in range(1 if expected is None else ROUNDS):
        for row in spark.range(0, tasks, 1, tasks).select(answer("id").alias("answer")).collect():
            reply = json.loads(row.answer)
            answers[reply["id"]] = reply["facts"]
        if expected is None or len(answers) >= expected:
            break
    return answers


def _answer_function() -> Any:
    """Return a function that is pickled by value and needs no letterhead on the worker."""
    cloudpickle.register_pickle_by_value(letterhead._doctor)
    try:
        pickled_examine, hold = cloudpickle.dumps(examine), HOLD
    finally:
        cloudpickle.unregister_pickle_by_value(letterhead._doctor)

    def answer(_: int) -> str:
        import os

        facts = pickle.loads(pickled_examine)()
        time.sleep(hold)
        # The parent process of a worker belongs to its executor.
        return json.dumps({"id": f"{facts['host']} {os.getppid()}", "facts": facts})

    return answer


def _job_failed(error: Exception) -> Finding:
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        line = next(line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        problem = f"the workers run another Python than the driver: {line.partition('] ')[2]}"
    elif "Cannot run program" in text:
        program = text.partition("Cannot run program")[2].splitlines()[0]
        problem = f"the workers' Python does not start: Cannot run program{program}"
    else:
        problem = f"the executors could not be checked: {type(error).__name__}: {text.strip().splitlines()[0]}"
    remedy = "set PYSPARK_PYTHON (or spark.pyspark.python) to a Python of the driver's version that the workers have"
    return Finding("wrong", "executors", problem, remedy)


def _groups(answers: Mapping[str, Facts]) -> Iterable[tuple[list[str], Facts]]:
    """Group executors that differ only by host."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, facts in answers.items():
        # An archive is unpacked in a different directory on each executor.
        groups[json.dumps({**facts, "host": "", "letterhead": {**facts["letterhead"], "location": ""}})].append(name)
    for names in groups.values():
        yield sorted(names), answers[names[0]]


def _judge_versions(driver: Facts, facts: Facts, where: str) -> Iterable[Finding]:
    ours, theirs = driver["letterhead"], facts["letterhead"]
    if "error" in ours or "error" in theirs:
        return
    if ours["version"] != theirs["version"]:
        problem = f"letterhead {theirs['version']} from {theirs['location']}, and the driver has {ours['version']}"
        remedy = f"ship the executors the wheel that the driver has: {ours['version']}"
        yield Finding("wrong", where, problem, remedy)


def _settings(spark: SparkSession) -> dict[str, str]:
    settings = {}
    for name in SETTINGS:
        # Not every version of Spark has every setting. With a default argument, `get` would not return Spark's own
        # default.
        with suppress(Exception):
            settings[name] = spark.conf.get(name)
    return {name: str(value) for name, value in settings.items() if value is not None}


def _judge_session(spark: SparkSession, driver: Facts, settings: Mapping[str, str]) -> Iterable[Finding]:
    client, server = driver["packages"]["pyspark"] or "", spark.version
    if client.split(".")[:2] != server.split(".")[:2]:
        problem = f"pyspark {client} is connected to Spark {server}"
        yield Finding("wrong", "driver", problem, f"pip install 'pyspark=={server}'")
    if not is_sail(spark):  # Sail ignores the setting
        yield from _judge_batches(int(settings.get(ROWS_PER_BATCH, "10000")))


def _judge_batches(rows: int) -> Iterable[Finding]:
    """Assess the number of rows in a batch; docs/benchmarks/spark.md has times for 1,000 to 64,000."""
    if rows <= 0:
        problem = "no limit of rows, so that a batch can be as large as a partition"
    elif rows < 1000:
        problem = "batches of so few rows take longer"
    elif rows > 64_000:
        problem = "batches of so many rows take more memory, and longer"
    else:
        return
    remedy = f"spark.conf.set({ROWS_PER_BATCH!r}, 10000), its default; 4,000 to 64,000 rows take about as long"
    yield Finding("note", "session", f"{ROWS_PER_BATCH}={rows}: {problem}", remedy)
