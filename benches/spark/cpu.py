"""How much CPU time a session's processes took, and how much of it was spent in native calls of letterhead.

A ratio of wall times says little while other work runs on the same cores; CPU time, in which waiting is not, says more.
What is counted is user and system time of every process that the session started.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import psutil
import pyarrow as pa
from pyspark.accumulators import AccumulatorParam


class Cpu(NamedTuple):
    """CPU time in seconds: of the JVM, and of Python's workers with the daemon that forks them."""

    jvm: float
    workers: float


@contextmanager
def counted() -> Iterator[list[Cpu]]:
    """Add to the list that is given what the body took, as the system counts it: in steps of 10 ms."""
    times: list[Cpu] = []
    before = _taken()
    yield times
    after = _taken()
    # The daemon's own count leaves out workers that have ended. Spark ends idle ones, so none that the body kept busy.
    spent = {process: seconds - before.get(process, 0.0) for process, seconds in after.items()}
    jvm = spent.pop(_jvm())
    times.append(Cpu(jvm, sum(spent.values())))


def _taken() -> dict[psutil.Process, float]:
    """Return the CPU time of the session's processes until now."""
    jvm = _jvm()
    seconds = {}
    for process in (jvm, *jvm.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it ended just now
        seconds[process] = times.user + times.system
    return seconds


def _jvm() -> psutil.Process:
    from pyspark import SparkContext

    return psutil.Process(SparkContext._gateway.proc.pid)


class _Sum(AccumulatorParam[float]):
    def zero(self, value: float) -> float:
        return 0.0

    def addInPlace(self, value1: float, value2: float) -> float:
        return value1 + value2


@contextmanager
def native_calls_counted(spark: Any) -> Iterator[Any]:
    """Make every `mapInArrow` of letterhead that is planned in the body add its time in native calls to what is given.

    Counted is the CPU time of the worker's thread while an operation is called and while its stream is read: the kernels
    run in that one thread. It includes a few microseconds of Python before the native function, and excludes reading the
    batch from Spark and handing the result to pyarrow and Spark. :func:`counted` gives the whole CPU time of the workers,
    with which this is compared.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    spent = spark.sparkContext.accumulator(0.0, _Sum())
    plan = DataFrame.mapInArrow

    def with_clock(frame: Any, runner: Any, schema: Any) -> Any:
        return plan(frame, _Clocked(runner, spent), schema)

    with mock.patch.object(DataFrame, "mapInArrow", with_clock):
        yield spent


class _Clocked:
    """The worker's function, with a clock around what it calls."""

    def __init__(self, runner: Any, spent: Any):
        self.runner = runner
        self.spent = spent

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        operation = type(self.runner.operation)
        clock = _Clock(operation.chunks)
        with mock.patch.object(operation, "chunks", lambda *arguments: clock(*arguments)):
            yield from self.runner(batches)
        self.spent.add(clock.seconds)


class _Clock:
    """An operation that notes the CPU time of its thread."""

    def __init__(self, operation: Callable[..., Any]):
        self.operation = operation
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        began = time.thread_time()
        chunks = iter(self.operation(*arguments, **options))
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                return
            finally:
                self.seconds += time.thread_time() - began
            yield chunk
            began = time.thread_time()
