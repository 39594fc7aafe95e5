"""``letterhead.open``: read any source, named as on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from letterhead._optional_dependencies import needed
from letterhead._row_request import RowRequest, StoreOptions, columns_asked, is_committed
from letterhead._shared_parameters import documented
from letterhead.sources.base import check_options

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.kafka.settings import SettingsLike
    from letterhead.limits import Limits
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.where.conditions import Where

__all__ = ["open"]


@documented
def open(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    last: int | None = None,
    follow: bool = False,
    partitions: Iterable[int] | None = None,
    commit_group: str | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
    ignore_crc: bool = False,
    settings: SettingsLike | None = None,
    store: str | None = None,
    store_type: str | None = None,
    values: str | None = None,
    timeout_ms: int | None = None,
    limits: Limits | None = None,
) -> Reader:
    """Read a topic, log segments, a state store or a table, named by one text.

    Use it where the source is an argument of a program: ``letterhead read SOURCE`` reads the same sources. Functions of
    :mod:`letterhead.read` have more options of each kind of source.

    Parameters
    ----------
    source : str, path, or sequence of them
        What to read:

        * a topic of Kafka: ``kafka://host:port[,host:port]/topic[/partition]``;
        * a topic of Iggy: ``iggy://user:password@host:port/stream/topic[/partition]``; without a login, the environment
          has one in ``IGGY_TOKEN``, or in ``IGGY_USERNAME`` and ``IGGY_PASSWORD``;
        * log segments of Kafka or Iggy: a ``.log`` file, several of them, the directory of a partition, or a directory of
          such directories;
        * a state directory of Kafka Streams or letterhead;
        * a table: Parquet, Arrow IPC or JSON lines, also if compressed by gzip or zstd; the first bytes tell which;
        * a directory of Parquet files, as Spark writes it, also with partition directories (``date=2026-01-01``);
        * ``"-"``: a table on standard input.
    columns : sequence of str, optional
        Columns to return, in order; by default all.
    {headers_as_columns}
    where : Condition or str, optional
        Which rows to return: a condition on headers and on columns, as in :mod:`letterhead.arrow`.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        Of topics and log segments: where to begin, and where to stop, as in :func:`letterhead.read.topic`.
    last : int, optional
        Read only the last rows, of each partition, that the other options select.
    follow : bool, default False
        Of topics: wait for new records, without end.
    partitions : iterable of int, optional
        Of topics and log segments: partitions to read; by default all.
    commit_group : str, optional
        Of topics of Kafka: a consumer group to which the offsets that were read are committed, as in
        :func:`letterhead.read.topic`.
    isolation_level : {"read_uncommitted", "read_committed"}, optional
        Of Kafka: whether to leave out aborted transactions, and stop where one is open. By default as ``isolation.level`` of
        the settings says, or ``"read_uncommitted"``.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.messages`.
    {error_column}
    ignore_crc : bool, default False
        Of log segments of Kafka, with ``errors="column"``: read the records of a batch with a wrong checksum, as in
        :func:`letterhead.read.segments`.
    settings : mapping of str to str, or path, optional
        Of Kafka: settings of the connection, or a property file, as in :func:`letterhead.read.topic`.
    store : str, optional
        Of a state directory: the store of this name; needed if there are several.
    store_type, values : str, optional
        Of a state directory: the type of the store, as in :func:`letterhead.read.state`.
    timeout_ms : int, optional
        Of topics: how long a request may take, with connection and retries; by default ``default.api.timeout.ms`` of the
        settings of Kafka, or 60000.
    {limits}

    Returns
    -------
    Reader
        A stream of record batches. Connections are opened when the first batch is read.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or a directory has none of these.
    ValueError
        If a name is not one of a source, or an option is invalid or not for this kind of source.
    DamagedTableError
        If a table is damaged.

    Examples
    --------
    >>> import letterhead as lh
    >>> where = "tenant = 'acme' and retry::int > 2"
    >>> with lh.open("tests/samples/orders-0", columns=["offset"], headers={"retry": "int32"}, where=where) as reader:
    ...     table = reader.read_all()
    >>> table.num_rows, table.column_names
    (2, ['offset', 'retry'])
    >>> lh.open("tests/samples/orders-0.parquet").read_all().num_rows
    10000
    >>> lh.open("kafka://broker:9092/orders", settings="client.properties", last=10)  # doctest: +SKIP
    """
    with needed("reading a source", "'letterhead[arrow]'"):
        import pyarrow  # noqa: F401
    from letterhead.kafka.settings import reader_values
    from letterhead.sources.recognition import open_sources

    names = [source] if isinstance(source, str | os.PathLike) else source
    opened = open_sources([os.fspath(name) for name in names])
    if len(opened) != 1:
        raise ValueError(f"open reads one source, not {len(opened)}: only .log files can be several")
    request = RowRequest(
        columns=columns_asked(columns, headers),
        headers=headers,
        where=where,
        start=start,
        end=end,
        last=last,
        follow=follow,
        partitions=None if partitions is None else frozenset(partitions),
        commit_group=commit_group,
        committed=is_committed(isolation_level),
        errors=errors,
        error_column=error_column,
        ignore_crc=ignore_crc,
        limits=limits,
        timeout_ms=timeout_ms,
        settings=reader_values(settings),
        stores=StoreOptions(store, store_type, values),
    )
    check_options(opened, request)
    return opened[0].reader(request)
