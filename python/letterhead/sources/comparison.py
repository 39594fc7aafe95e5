"""Compare the rows of two sources: :func:`diff`, and :func:`compare`, which the command calls.

Rows are matched by partition and offset, or by partition and position. Sources return partitions in any order: rows
that wait for the other source are held in memory up to a limit, and in a temporary file beyond it.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, Unpack, get_args

from letterhead._arrow_types import as_header_lists, convert_children, has_headers, header_lists_type
from letterhead._names import check_name, join_names
from letterhead._row_request import RowRequest, row_request
from letterhead._table_batches import common_type, rows_by_partition, split_batches, type_without_encodings
from letterhead.errors import HeaderError, copy_error
from letterhead.operations.remedies import showing_rows
from letterhead.reader import Reader
from letterhead.sources.base import LogSource, Source, check_options
from letterhead.sources.table_files import STANDARD_INPUT

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._read_options import ReadOptions
    from letterhead.kafka.settings import SettingsLike
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.sources.recognition import SourceLike
    from letterhead.where.conditions import Where

__all__ = ["Comparison", "compare", "diff"]

Order: TypeAlias = Literal["offset", "position"]

_SIDES = ("first", "second")

_HELD_BYTES = 64 << 20
"""Maximum size in bytes of the waiting rows of a source in memory."""

_UNCOMPARED = (
    "stream", "topic", "partition", "offset", "producer_id", "producer_epoch", "sequence", "transactional",
)  # fmt: skip
"""Columns for the location and the producer of a record, which are compared only on request."""


@dataclass
class Comparison:
    """Counts of rows so far, and the compared columns."""

    columns: tuple[str, ...]
    only_first: tuple[str, ...]
    """Columns that the second source lacks."""
    only_second: tuple[str, ...]
    order: Order
    rows: list[int] = field(default_factory=lambda: [0, 0])
    """Rows of each source."""
    equal: int = 0
    changed: int = 0
    missing: list[int] = field(default_factory=lambda: [0, 0])
    """Rows that each source lacks."""

    @property
    def differences(self) -> int:
        """Number of rows that differ or are missing in one source."""
        return self.changed + sum(self.missing)


def compare(
    first: Reader, second: Reader, *, columns: Sequence[str] | None = None, order: Order | None = None
) -> tuple[Comparison, pa.Schema, Iterator[pa.RecordBatch]]:
    """Compare the rows of two readers.

    Parameters
    ----------
    first, second : Reader
        Rows, in each partition by ascending offset.
    columns : sequence of str, optional
        Columns to compare; by default all common columns, except a record's position and producer.
    order : {"offset", "position"}, optional
        Whether to match rows of a partition by offset or by position; by default by offset if both have it.

    Returns
    -------
    tuple
        The counts, which are updated while batches are read, and the schema and batches of the rows that differ:
        ``partition``, ``offset`` or ``position``, the names of the columns that differ in ``differs``, and the compared
        columns of each source in ``first`` and ``second``; one is null if its source lacks the row.

    Raises
    ------
    ValueError
        If a column is missing, or offsets of a partition do not ascend.
    """
    import pyarrow as pa

    names = [*first.schema.names], [*second.schema.names]
    common = [name for name in names[0] if name in names[1]]
    compared = [name for name in common if name not in _UNCOMPARED] if columns is None else [*columns]
    for name in compared:
        for number, own in enumerate(names):
            if name not in own:
                raise ValueError(f"the {_SIDES[number]} source has no column {name!r}: it has {join_names(own)}")
    if not compared:
        both = " and ".join(join_names(own) if own else "no columns" for own in names)
        raise ValueError(f"no column is in both sources: they have {both}")
    by_offset = "offset" in common if order is None else order == "offset"
    if by_offset and "offset" not in common:
        raise ValueError("both sources need a column 'offset' to meet by it: compare by position")
    by_partition = "partition" in common
    for name in [*(["partition"] if by_partition else []), *(["offset"] if by_offset else [])]:
        for type in (first.schema.field(name).type, second.schema.field(name).type):
            if not pa.types.is_integer(type):
                raise ValueError(
                    f"rows meet by the column {name!r}, which is {type}: cast it to whole numbers, or rename it"
                )
    types = {
        name: _common_type(name, first.schema.field(name).type, second.schema.field(name).type) for name in compared
    }
    only_first, only_second = (tuple(name for name in own if columns is None and name not in common) for own in names)
    comparison = Comparison(tuple(compared), only_first, only_second, "offset" if by_offset else "position")
    record = pa.struct(list(types.items()))
    schema = pa.schema(
        [
            *([pa.field("partition", pa.int64())] if by_partition else []),
            (comparison.order, pa.int64()),
            ("differs", pa.list_(pa.string())),
            ("first", record),
            ("second", record),
        ]
    )
    remedy = "sort the table by partition and offset, compare one topic at a time, or compare by position"
    if not by_partition and (having := [number for number, own in enumerate(names) if "partition" in own]):
        remedy = f"only the {_SIDES[having[0]]} source has a column 'partition': select one of its partitions"
    sides = [
        _Side(name, reader, types, by_partition, by_offset, remedy)
        for name, reader in zip(_SIDES, (first, second), strict=True)
    ]
    return comparison, schema, _differences(sides, comparison, schema)


def diff(
    first: SourceLike,
    second: SourceLike,
    *,
    columns: Sequence[str] | None = None,
    by: Order | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    settings: SettingsLike | None = None,
    **options: Unpack[ReadOptions],
) -> Reader:
    """Compare the records of two topics, logs or tables, and return those that differ.

    Memory does not depend on the number of records: records that wait for the other source are held up to 64 MiB, and
    in a temporary file beyond it.

    Parameters
    ----------
    first, second : str, path or Arrow stream
        Sources, as :func:`letterhead.open` reads them. In each partition offsets must ascend.
    columns : sequence of str, optional
        Columns to compare; by default all common columns, except a record's position and producer.
    by : {"offset", "position"}, optional
        Whether to match records of a partition by offset, or by position, as for a copied topic; by default by offset if
        both sources have it.
    where : Condition or str, optional
        Condition that selects the records of both sources.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        For topics and log segments: where to start and to stop in both sources, as in :func:`letterhead.read.topic`.
    settings : mapping of str to str, or path, optional
        For Kafka: connection settings, as in :func:`letterhead.read.topic`.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Reader
        A row for each record that differs: ``partition``, ``offset`` or ``position``, the names of the columns in
        ``differs``, and the compared columns of each source in ``first`` and ``second``; one is null if its
        source lacks the record. No rows if the sources are equal.

    Raises
    ------
    ValueError
        If a column is missing or has another type, or offsets of a partition do not ascend.

    Examples
    --------
    >>> import letterhead as lh
    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> _ = lh.copy("tests/samples/orders-0", directory, where="offset < 9999")
    >>> with lh.diff("tests/samples/orders-0", directory) as differences:
    ...     [(row["offset"], row["second"]) for row in differences.read_all().to_pylist()]
    [(9999, None)]
    """
    from letterhead.kafka.settings import reader_values
    from letterhead.sources.recognition import is_arrow_stream, open_sources

    if by is not None:
        check_name("by", by, get_args(Order))
    request = row_request(options, columns=columns, where=where, start=start, end=end, settings=reader_values(settings))
    opened = [source for name in (first, second) for source in open_sources([name])]
    check_options(opened, request)
    if first is second and is_arrow_stream(first) and not hasattr(first, "__len__"):
        raise ValueError("a stream is read once, and cannot be compared with itself")
    names = request.columns
    requests = comparison_requests(opened, request, names)
    readers = [source.reader(own) for source, own in zip(opened, requests, strict=True)]
    _, schema, batches = compare(*readers, columns=names, order=by)

    def parts() -> Iterator[pa.RecordBatch]:
        with showing_rows():
            for batch in batches:
                yield from split_batches(batch, request.limits)

    return Reader(schema, parts)


def comparison_requests(
    sources: Sequence[Source], request: RowRequest, names: Sequence[str] | None
) -> list[RowRequest]:
    """Return requests for the columns to compare and to match rows by; raise ValueError if rows cannot be compared."""
    if request.follow:
        raise ValueError("a comparison ends: leave out follow=")
    if all(source.name == STANDARD_INPUT for source in sources):
        raise ValueError("standard input is read once, and cannot be compared with itself")
    if request.last is not None and len({isinstance(source, LogSource) for source in sources}) > 1:
        raise ValueError(
            "last= counts rows of each partition of a log, but of a whole table: compare both with where=, such as an offset"
        )
    if names is None:
        requests = [_of_records(source, request) for source in sources]
        are_all_internal = all(own is not request for own in requests)
        return [request for _ in sources] if are_all_internal else requests
    return [_with_columns(source, request, names) for source in sources]


def _of_records(source: Source, request: RowRequest) -> RowRequest:
    """Return the request for the undecoded records of an internal topic, which its copies contain."""
    if isinstance(source, LogSource) and source.internal is not None:
        return replace(request, columns=source.record_columns)
    return request


def _with_columns(source: Source, request: RowRequest, names: Sequence[str]) -> RowRequest:
    own = {*source.columns(request)}
    meeting = [name for name in ("partition", "offset") if name in own and name not in names]
    return replace(request, columns=(*meeting, *names))


def _differences(sides: Sequence[_Side], comparison: Comparison, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read both sources alternately, and yield their differences."""
    try:
        while not all(side.is_ended for side in sides):
            side = min((side for side in sides if not side.is_ended), key=lambda side: side.rows)
            partitions = side.read()
            comparison.rows = [side.rows for side in sides]
            for partition in {*sides[0].waiting, *sides[1].waiting} if side.is_ended else partitions:
                while (met := _meet(sides, partition)) is not None:
                    yield from _compare_range(partition, *met, comparison, schema)
                for number, own in enumerate(sides):
                    if sides[1 - number].is_ended:
                        for rows in own.take_all(partition):
                            yield from _lacking(partition, rows, number, comparison, schema)
    finally:
        for side in sides:
            side.close()


def _meet(sides: Sequence[_Side], partition: int | None) -> tuple[pa.RecordBatch, pa.RecordBatch] | None:
    """Take the waiting rows of both sources up to the smaller of their last keys; None if a source has no rows."""
    heads = [rows for side in sides if (rows := side.head(partition)) is not None]
    if len(heads) < len(sides):
        return None
    last = min(rows.column(0)[-1].as_py() for rows in heads)
    first, second = (side.take(partition, last) for side in sides)
    return first, second


def _compare_range(
    partition: int | None, first: pa.RecordBatch, second: pa.RecordBatch, comparison: Comparison, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Compare the rows of a range of keys, and yield the differences."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[pa.RecordBatch] = []
    if not first.column(0).equals(second.column(0)):
        in_both = [
            pc.is_in(own.column(0), value_set=other.column(0)) for own, other in ((first, second), (second, first))
        ]
        for number, (rows, mask) in enumerate(zip((first, second), in_both, strict=True)):
            parts += _lacking(partition, rows.filter(pc.invert(mask)), number, comparison, schema)
        first, second = first.filter(in_both[0]), second.filter(in_both[1])
    differing = {
        name: {*_unequal(_bits(first.column(name)), _bits(second.column(name)))} for name in comparison.columns
    }
    changed = sorted(set().union(*differing.values()))
    comparison.equal += len(first) - len(changed)
    comparison.changed += len(changed)
    if changed:
        differs = [[name for name in comparison.columns if row in differing[name]] for row in changed]
        indices = pa.array(changed, pa.int64())
        records = [_records(rows.take(indices), schema) for rows in (first, second)]
        parts.append(_batch(partition, first.column(0).take(indices), differs, records, schema))
    if len(parts) > 1:
        [merged] = pa.Table.from_batches(parts).sort_by(comparison.order).combine_chunks().to_batches()
        parts = [merged]
    yield from parts


def _lacking(
    partition: int | None, rows: pa.RecordBatch, number: int, comparison: Comparison, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield rows that are missing in the other source."""
    import pyarrow as pa

    if len(rows):
        comparison.missing[1 - number] += len(rows)
        records = [_records(rows, schema), pa.nulls(len(rows), schema.field("first").type)]
        sides = records if number == 0 else records[::-1]
        yield _batch(partition, rows.column(0), [[]] * len(rows), sides, schema)


def _batch(
    partition: int | None, keys: pa.Array, differs: list[list[str]], sides: Sequence[pa.Array], schema: pa.Schema
) -> pa.RecordBatch:
    import pyarrow as pa

    partitions = [pa.repeat(pa.scalar(partition, pa.int64()), len(keys))] if "partition" in schema.names else []
    columns = [*partitions, keys, pa.array(differs, pa.list_(pa.string())), *sides]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _records(rows: pa.RecordBatch, schema: pa.Schema) -> pa.StructArray:
    import pyarrow as pa

    record = schema.field("first").type
    return pa.StructArray.from_arrays([rows.column(field.name) for field in record], fields=[*record])


def _unequal(first: pa.Array, second: pa.Array, start: int = 0) -> Iterator[int]:
    """Yield the indices of the rows in which two columns differ, found by bisection."""
    if first.equals(second):
        return
    if len(first) == 1:
        yield start
        return
    half = len(first) // 2
    yield from _unequal(first[:half], second[:half], start)
    yield from _unequal(first[half:], second[half:], start + half)


def _bits(column: pa.Array) -> pa.Array:
    """Return floats, including nested floats, as their bits: a NaN equals itself, and 0.0 is not -0.0."""
    bits = _bits_type(column.type)
    return column if bits == column.type else column.view(bits)


def _bits_type(type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_floating(type):
        return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type.bit_width]
    return convert_children(type, _bits_type)


def _is_pairs(type: pa.DataType) -> bool:
    """Return whether a column has untyped headers with text keys, in any shape."""
    import pyarrow as pa

    lists = header_lists_type(type)
    return (
        has_headers(type)
        and {field.name for field in lists.value_type} == {"key", "value"}
        and not pa.types.is_integer(lists.value_type.field("key").type)
    )


_UNITS = ("s", "ms", "us", "ns")


def _common_type(name: str, first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the common type for comparing two columns."""
    import pyarrow as pa

    from letterhead.offsets.output_columns import KAFKA_HEADERS

    first, second = map(type_without_encodings, (first, second))
    if name == "headers":  # compared as lists, whatever their shape
        first, second = (header_lists_type(type) if has_headers(type) else type for type in (first, second))
    if first.equals(second):
        return first
    if name == "headers" and all(_is_pairs(type) for type in (first, second)):
        return KAFKA_HEADERS
    if pa.types.is_timestamp(first) and pa.types.is_timestamp(second):
        # Spark writes UTC times to Parquet without a zone.
        return pa.timestamp(max(first.unit, second.unit, key=_UNITS.index), first.tz or second.tz)
    type = common_type(first, second)
    if type is None:
        raise ValueError(
            f"column {name!r} is {first} in the first source and {second} in the second: leave it out by columns="
        )
    return type


class _Side:
    """One of the two sources, with its rows by partition that are not compared yet."""

    def __init__(
        self,
        name: str,
        reader: Reader,
        types: Mapping[str, pa.DataType],
        by_partition: bool,
        by_offset: bool,
        remedy: str,
    ) -> None:
        self._name = name
        self._reader = reader
        self._remedy = remedy
        self._types = types
        self._by_partition = by_partition
        self._by_offset = by_offset
        self._last: dict[int | None, int] = {}
        self._held = 0
        self._spilled: BinaryIO | None = None
        self.waiting: dict[int | None, deque[_Waiting]] = {}
        self.is_ended = False
        self.rows = 0

    def read(self) -> list[int | None]:
        """Read a batch, and return the partitions of its rows."""
        try:
            batch = next(self._reader, None)
        except HeaderError as error:
            raise copy_error(error, f"{error.message} in the {self._name} source") from None
        if batch is None:
            self.is_ended = True
            return []
        self.rows += len(batch)
        if not self._by_partition or not len(batch):
            self._add(None, batch)
            return [None]
        parts = dict(rows_by_partition(batch))
        for number, rows in parts.items():
            self._add(number, rows)
        return [*parts]

    def _add(self, partition: int | None, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        if not len(batch):
            return
        before = self._last.get(partition, -1)
        if self._by_offset:
            keys = _offsets(batch)
            _check_ascending(keys, before, partition, self._name, self._remedy)
        else:
            keys = pa.array(range(before + 1, before + 1 + len(batch)), pa.int64())
        self._last[partition] = keys[-1].as_py()
        columns = [_as_type(name, batch.column(name), type) for name, type in self._types.items()]
        rows = pa.RecordBatch.from_arrays([keys, *columns], names=["", *self._types])
        queue = self.waiting.setdefault(partition, deque())
        size = rows.get_total_buffer_size()
        if queue and self._held + size > _HELD_BYTES:
            queue.append(self._spill(rows))
        else:
            self._held += size
            queue.append(_Waiting(rows, size))

    def _spill(self, rows: pa.RecordBatch) -> _Waiting:
        if self._spilled is None:
            self._spilled = tempfile.TemporaryFile()  # noqa: SIM115
        start = self._spilled.seek(0, 2)
        length = self._spilled.write(rows.serialize())
        return _Waiting(None, 0, start, length, rows.schema)

    def head(self, partition: int | None) -> pa.RecordBatch | None:
        """Return the first waiting batch."""
        import pyarrow as pa

        queue = self.waiting.get(partition)
        if not queue:
            return None
        waiting = queue[0]
        if waiting.rows is None:
            file: Any = self._spilled
            file.seek(waiting.start)
            waiting.rows = pa.ipc.read_record_batch(pa.py_buffer(file.read(waiting.length)), waiting.schema)
        return waiting.rows

    def take(self, partition: int | None, last: int) -> pa.RecordBatch:
        """Remove and return the rows of the first waiting batch up to a key."""
        import pyarrow.compute as pc

        rows: Any = self.head(partition)
        queue = self.waiting[partition]
        count = pc.sum(pc.less_equal(rows.column(0), last)).as_py() or 0
        if count == len(rows):
            self._held -= queue.popleft().size
        else:
            queue[0].rows = rows.slice(count)
        return rows.slice(0, count)

    def take_all(self, partition: int | None) -> Iterator[pa.RecordBatch]:
        """Take all waiting batches."""
        while (rows := self.head(partition)) is not None:
            self._held -= self.waiting[partition].popleft().size
            yield rows

    def close(self) -> None:
        """Close the reader and the temporary file."""
        self._reader.close()
        if self._spilled is not None:
            self._spilled.close()


@dataclass
class _Waiting:
    """Batch in memory, or its position in the temporary file."""

    rows: pa.RecordBatch | None
    size: int
    start: int = 0
    length: int = 0
    schema: pa.Schema | None = None


def _offsets(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa

    try:
        return batch.column("offset").cast(pa.int64())
    except pa.ArrowInvalid:
        raise ValueError("an offset is larger than Kafka's largest one, 2^63 - 1: compare by position") from None


def _check_ascending(keys: pa.Array, before: int, partition: int | None, name: str, remedy: str) -> None:
    import pyarrow.compute as pc

    owner = f"{'' if partition is None else f' of partition {partition}'} in the {name} source"
    if keys.null_count:
        raise ValueError(f"an offset{owner} is null: compare by position")
    if keys[0].as_py() > before and pc.all(pc.less(keys[:-1], keys[1:])).as_py() is not False:
        return
    offsets = [before, *keys.to_pylist()]
    first, second = next(pair for pair in pairwise(offsets) if pair[0] >= pair[1])
    raise ValueError(f"offsets{owner} do not ascend, from {first} to {second}: {remedy}")


def _as_type(name: str, column: pa.Array, type: pa.DataType) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name == "headers" and has_headers(column.type):
        column = as_header_lists(column)
        # Spark's Kafka source also returns an empty list for a message without headers.
        column = pc.coalesce(column, pa.scalar([], column.type)) if column.null_count else column
    try:
        return column if column.type.equals(type) else column.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"column {name!r} cannot be compared as {type}, which does not hold all values of both sources: leave it out by "
            "columns="
        ) from None
