"""Options of reading in pairs, on every surface: the command line, ``lh.open``, ``lh.read`` and Spark return the same rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.spark.sources import register
from tests.helpers.log_bytes import batch, record, write_segments

ACME, GLOBEX = [("tenant", b"acme")], [("tenant", b"globex")]
ONE, TWO, BAD = [("retry", b"\0\1")], [("retry", b"\0\2")], [("retry", b"\0\0\0\1")]
RECORDS = [ACME + ONE, BAD + ACME, GLOBEX + TWO, [], BAD + ACME, ONE + GLOBEX]
"""Headers of the records of each partition. A value of four bytes is not an int16."""

PARTITIONS = 2
COLUMNS = ["partition", "offset"]
BY_TENANT, BY_RETRY = "tenant = 'acme'", "retry::int16 = 1"

Row = dict[str, Any]


class Options(NamedTuple):
    """Options of reading, of which at most two or three are set."""

    where: str | None = None
    errors: str = "raise"
    last: int | None = None
    limit: int | None = None
    headers: dict[str, str] | None = None

    def __str__(self) -> str:
        chosen = {name: value for name, value in self._asdict().items() if value != Options._field_defaults[name]}
        return ", ".join(f"{name}={value}" for name, value in chosen.items()) or "none"


def cases() -> Iterator[Options]:
    """Yield every pair of options, and with a condition that cannot be decided or a damaged header every triple."""
    values = (
        (None, BY_TENANT, BY_RETRY), ("raise", "null", "column"), (None, 2), (None, 3),
        (None, {"tenant": "string"}, {"tenant": "string", "retry": "int16"}),
    )  # fmt: skip
    for chosen in itertools.product(*values):
        options = Options(*chosen)
        count = sum(value != default for value, default in zip(options, Options(), strict=True))
        if count <= 2 or (count == 3 and options.errors != "raise"):
            yield options


CASES = [*cases()]


def expected(options: Options) -> list[Row] | None:
    """Return the rows that the options select, read one record after the other; None for an error."""
    rows: list[list[Row]] = []
    for partition in range(PARTITIONS):
        selected: list[Row] = []
        for offset, headers in enumerate(RECORDS):
            values = dict(headers)
            is_bad = len(values.get("retry", b"")) == 4
            truth: bool | None = True
            if options.where == BY_TENANT:
                truth = values.get("tenant") == b"acme"
            elif options.where == BY_RETRY:
                truth = None if is_bad else values.get("retry") == b"\0\1"
            wants_retry = "retry" in (options.headers or ())
            if options.errors == "raise" and is_bad and (truth is None or wants_retry):
                return None
            if not (truth or (truth is None and options.errors == "column")):
                continue
            row: Row = {"partition": partition, "offset": offset}
            if options.headers:
                row["tenant"] = values["tenant"].decode() if "tenant" in values else None
            if wants_retry:
                row["retry"] = None if is_bad or "retry" not in values else values["retry"][1]
            if options.errors == "column":
                row["error"] = ["wrong_size"] if is_bad and (wants_retry or truth is None) else None
            selected.append(row)
        rows.append(selected if options.last is None else selected[-options.last :])
    return [row for part in rows for row in part][: options.limit]


def codes(row: Row) -> Row:
    """Return a row with the codes of its errors, each of them once."""
    if row.get("error"):
        row["error"] = sorted({error["code"] for error in row["error"]})
    return row


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's directory with the partitions of a topic, two batches in each."""
    folder = tmp_path_factory.mktemp("pairs")
    records = [record(offset % 3, block=lh.encode(headers, "kafka") or b"\0") for offset, headers in enumerate(RECORDS)]
    data = batch(*records[:3], base_offset=0) + batch(*records[3:], base_offset=3)
    for partition in range(PARTITIONS):
        write_segments(folder / f"orders-{partition}", [data], [0])
    return folder


# Surfaces in one process ----------------------------------------------------------------------------------------------


def by_command(run: Callable[..., Any], log: Path, options: Options) -> list[Row] | None:
    arguments = ["--json", "--columns", ",".join(COLUMNS), "--errors", options.errors]
    if options.where is not None:
        arguments += ["--where", options.where]
    if options.headers is not None:
        arguments += ["--headers", ",".join(f"{name}:{type}" for name, type in options.headers.items())]
    for name, number in (("--last", options.last), ("--limit", options.limit)):
        arguments += [] if number is None else [name, str(number)]
    result = run("read", log, *arguments)
    if result.code == 1 and options.errors == "raise":
        assert "4 bytes where int16 takes 2" in result.err
        return None
    return [json.loads(line) for line in result.out.splitlines()]


def by_reader(read: Callable[..., lh.Reader], log: Path, options: Options) -> list[Row] | None:
    keywords: dict[str, Any] = options._asdict()
    limit = keywords.pop("limit")
    try:
        with read(log, columns=COLUMNS, **keywords) as reader:
            return list(itertools.islice((row for rows in reader for row in rows.to_pylist()), limit))
    except lh.DecodeError as error:
        assert "4 bytes where int16 takes 2" in str(error)
        assert 'errors="column" returns all rows' in error.__notes__[0]
        return None


@pytest.mark.parametrize("options", CASES, ids=str)
def test_option_pairs_select_same_rows_in_python_and_command(
    run: Callable[..., Any], log: Path, options: Options
) -> None:
    rows = expected(options)
    for read in (
        by_command(run, log, options),
        by_reader(lh.open, log, options),
        by_reader(lh.read.segments, log, options),
    ):
        assert (read and [*map(codes, read)]) == rows


# Spark ----------------------------------------------------------------------------------------------------------------


def by_source(spark: Any, log: Path, options: Options) -> Any:
    register(spark)
    source = spark.read.format("letterhead-segments").options(columns=json.dumps(COLUMNS), errors=options.errors)
    if options.where is not None:
        source = source.option("where", options.where)
    if options.headers is not None:
        source = source.option("headers", json.dumps(options.headers))
    return source.load(str(log))


def by_map_in_arrow(spark: Any, log: Path, options: Options) -> Any:
    files = [
        (partition, (log / f"orders-{partition}" / f"{0:020}.log").read_bytes()) for partition in range(PARTITIONS)
    ]
    frame = spark.createDataFrame(files, "partition int, batch binary")
    keywords = {"where": options.where, "headers": options.headers, "errors": options.errors}
    return lhs.explode_batches(
        frame, "record-batch", column="batch", columns=["offset"], keep=["partition"], **keywords
    )


IN_SPARK = [options for options in CASES if options.last is None]


@pytest.mark.parametrize("read", [by_source, by_map_in_arrow])
@pytest.mark.parametrize("options", IN_SPARK, ids=str)
def test_option_pairs_select_same_rows_in_spark(
    spark: Any, log: Path, read: Callable[..., Any], options: Options
) -> None:
    every = expected(options._replace(limit=None))
    frame = read(spark, log, options)
    if every is None:
        with pytest.raises(Exception, match="4 bytes where int16 takes 2"):
            frame.collect()
        return
    if options.limit is not None:
        frame = frame.limit(options.limit)
    found = [codes(row.asDict(recursive=True)) for row in frame.collect()]
    assert len(found) == len(every[: options.limit])
    assert all(row in every for row in found)
    assert len({(row["partition"], row["offset"]) for row in found}) == len(found)


def test_spark_source_rejects_last_option(spark: Any, log: Path) -> None:
    register(spark)
    with pytest.raises(Exception, match="last"):
        spark.read.format("letterhead-segments").option("last", "2").load(str(log)).collect()
