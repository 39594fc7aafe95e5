"""`letterhead demo`: a real topic and a real Kafka Streams store through Spark, checked at every step.

This file checks what the demo needs, starts and stops Spark, and gives the exit code. The steps are in
`demo_steps.py`, the damage that is done to the store in `damage.py`, and the screen in `demo_screen.py`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from letterhead._optional_dependencies import how_to_install
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.render import console, json_text
from letterhead.cli.source import reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders-0.parquet"
STORE = "store-latest-0.parquet"
COLUMNS = {TOPIC: ("offset", "timestamp", "key", "value", "headers"), STORE: ("key", "value")}
WHERE = "the samples are in tests/samples of a clone: letterhead demo --data tests/samples"


def run_demo(data: Path | None, out: Path, *, bad_share: float, json: bool) -> int:
    """Run every step, print the screen or JSON, and say by the exit code whether all checks held."""
    data = _checked(data)
    _check_software()
    _check_columns(data)
    log = out / "spark.log"
    try:
        out.mkdir(parents=True, exist_ok=True)
        log.write_text("")
    except OSError as error:
        raise Failure(f"cannot write to {out}: {reason(error)}") from error
    with _status() as say:
        try:
            report = _run(data, out, bad_share, log, say)
        except Failure:
            raise
        except Exception as error:
            if not isinstance(error, OSError) and not type(error).__module__.startswith(("pyspark", "py4j", "pyarrow")):
                raise
            raise Failure(f"the demo could not go on: {_gist(error)} (Spark's log: {log})", FAULTS) from error
    if json:
        print(json_text(report, indent=2))
    else:
        from letterhead.cli.demo_screen import show

        show(console(), report)
    for failure in report["failures"]:
        print(f"letterhead: demo: {failure}", file=sys.stderr)
    return FAULTS if report["failures"] else OK


def _run(data: Path, out: Path, bad_share: float, log: Path, say: Any) -> dict[str, Any]:
    from letterhead.cli.demo_steps import Steps

    say("starting Spark …")
    began = time.perf_counter()
    with _spark(log) as spark:
        _start_workers(spark)
        started = time.perf_counter() - began
        steps = Steps(spark, data / TOPIC, data / STORE, out, say)
        return steps.run(bad_share, start_seconds=started)


def _gist(error: Exception) -> str:
    """Pick the telling line of what Spark reports over many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in lines if line.startswith("letterhead.errors.")), lines[0])


def _checked(data: Path | None) -> Path:
    if data is None:
        raise Failure(f"--data is missing: {WHERE}")
    if not data.is_dir():
        raise Failure(f"--data: {data} is not a directory: {WHERE}")
    for name in (TOPIC, STORE):
        if not (data / name).exists():
            raise Failure(f"--data: {data} has no {name}: {WHERE}")
    return data


def _check_columns(data: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, columns in COLUMNS.items():
        try:
            there = pq.read_schema(data / name).names
        except OSError as error:
            raise Failure(f"--data: cannot read {data / name}: {reason(error)}") from error
        except pa.ArrowInvalid as error:
            raise Failure(f"--data: {data / name} is not a Parquet file") from error
        missing = [column for column in columns if column not in there]
        if missing:
            raise Failure(f"--data: {data / name} has no column {', '.join(missing)}: {WHERE}")


def _check_software() -> None:
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(name) is None]
    if missing:
        raise Failure(how_to_install("the demo", " and ".join(missing), "'letterhead[cli,pyspark]'"))
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise Failure("the demo needs Java 17 or later: java is not on PATH, and JAVA_HOME does not lead to it")


@contextmanager
def _spark(log: Path) -> Iterator[SparkSession]:
    """Start Spark on this machine; whatever its JVM prints goes to a log file instead of the screen."""
    # Spark's workers run `python3` from PATH unless told, and it listens on the first network card it finds.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("letterhead demo")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        # Spark 3.5 gives -1 otherwise, which would be summed.
        "spark.sql.legacy.sizeOfNull": "false",
    }.items():
        builder = builder.config(name, value)
    with _output_of_children_to(log):
        spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


@contextmanager
def _output_of_children_to(log: Path) -> Iterator[None]:
    """Hand a file to processes started in here as their stdout and stderr, which they keep."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(file)


def _start_workers(spark: SparkSession) -> None:
    """Run one empty job through Python workers, so that their start is not counted as work on headers."""

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    spark.range(2, numPartitions=2).mapInArrow(same, "id long").collect()


@contextmanager
def _status() -> Iterator[Any]:
    """Show what is going on, on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    # A copy of stderr: the real one is lent to Spark's JVM for a moment while the spinner turns.
    copy: TextIO
    with os.fdopen(os.dup(2), "w") as copy, console(copy).status("…") as status:
        yield status.update
