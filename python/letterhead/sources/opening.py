"""``letterhead.open``: read any source, named as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from letterhead._optional_dependencies import install_hint
from letterhead._row_request import row_request
from letterhead.sources.base import check_options

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.kafka.settings import SettingsLike
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.sources.recognition import SourceLike
    from letterhead.where.conditions import Where

__all__ = ["open"]


def open(
    source: SourceLike | Sequence[SourceLike],
    headers: Columns | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    settings: SettingsLike | None = None,
    **options: Unpack[ReadOptions],
) -> Reader:
    """Read a topic, log segments, a state store or a table, named by one argument.

    Use it if the source is an argument of a program; ``letterhead read SOURCE`` reads the same sources.

    Parameters
    ----------
    source : str, path, Arrow stream, or sequence of paths
        The source:

        * a topic of Kafka: ``kafka://host:port[,host:port]/topic[/partition]``;
        * a topic of Iggy: ``iggy://user:password@host:port/stream/topic[/partition]``; without credentials, the environment
          variables ``IGGY_TOKEN``, or ``IGGY_USERNAME`` and ``IGGY_PASSWORD``, are used;
        * log segments of Kafka or Iggy: a ``.log`` file, several of them, the directory of a partition, or a directory of
          such directories;
        * a state directory of Kafka Streams or letterhead;
        * a table: Parquet, Arrow IPC or JSON lines, also compressed by gzip or zstd; the first bytes determine the type;
        * a directory of Parquet files, as Spark writes it, also with partition directories (``date=2026-01-01``);
        * any of these in an object store, by a URL that :meth:`pyarrow.fs.FileSystem.from_uri` reads
          (``s3://bucket/path``, ``gs://``, ``abfs://``, or ``fsspec+PROTOCOL://`` for a file system of fsspec);
        * ``"-"``: a table on standard input;
        * a table or stream of any Arrow library (``__arrow_c_stream__``), such as a :class:`pyarrow.Table`.
    columns : sequence of str, optional
        Columns to return, in order; by default all.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others: a mapping from column names to types, such as ``"int64"``,
        or to :func:`letterhead.field`. A missing header is null.
    where : Condition or str, optional
        Condition on headers and columns that selects the rows, as in :mod:`letterhead.arrow`.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        For topics and log segments: where to start and where to stop, as in :func:`letterhead.read.topic`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.messages`.
    settings : mapping of str to str, or path, optional
        For Kafka: connection settings by name, or a property file, as in :func:`letterhead.read.topic`.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Reader
        A stream of record batches. Connections are opened when the first batch is read.

    Raises
    ------
    FileNotFoundError
        If the file does not exist, or a directory contains none of these.
    ValueError
        If a name is not a source, or an option is invalid or not supported by the source.
    DamagedTableError
        If a table is damaged.

    Warns
    -----
    UnseenHeaderWarning
        After the last row, if no row has a header that ``where`` names, or a value of a column in ``headers``: its name may
        be misspelt. Reading a topic or log segments may search the records again for such a header.

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
    with install_hint("reading a source", "letterhead[arrow]"):
        import pyarrow  # noqa: F401
    from letterhead.kafka.settings import reader_values
    from letterhead.sources.recognition import open_sources

    names: Any = source if isinstance(source, Sequence) and not isinstance(source, str | bytes) else [source]
    opened = open_sources(names)
    if len(opened) != 1:
        raise ValueError(f"open reads one source, not {len(opened)}: only .log files can be several")
    request = row_request(
        options,
        columns=columns,
        headers=headers,
        where=where,
        start=start,
        end=end,
        errors=errors,
        settings=reader_values(settings),
    )
    check_options(opened, request)
    return opened[0].reader(request)
