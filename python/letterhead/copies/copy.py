"""``letterhead.copy``: copy records to a directory, a file or a topic."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from letterhead._optional_dependencies import install_hint
from letterhead._row_request import RowRequest, row_request
from letterhead.copies.copying import Copied, Copying, TargetOptions
from letterhead.operations.remedies import showing_rows
from letterhead.sources.base import Source, check_options
from letterhead.sources.iggy import is_iggy_address
from letterhead.sources.kafka import is_kafka_address
from letterhead.sources.recognition import open_sources

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.kafka.settings import SettingsLike
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.sources.recognition import SourceLike
    from letterhead.where.conditions import Where

__all__ = ["copy", "copy_of", "split_options"]


def copy(
    source: SourceLike,
    target: str | os.PathLike[str],
    *,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    create: bool | int = False,
    append: bool = False,
    settings: SettingsLike | None = None,
    target_settings: SettingsLike | None = None,
    offsets: str | os.PathLike[str] | None = None,
    **options: Unpack[ReadOptions],
) -> Copied:
    """Copy a topic or a log to a directory of Parquet files or to a file, or any records to a topic; copy each record once.

    Keys, values, headers (with order, repeats and nulls), timestamps and partitions are kept. If a copy was killed, call
    it again: it continues, and each record is copied once. A directory continues after the last offset in its files; a
    topic continues after its last record, which is compared with the source.

    Parameters
    ----------
    source : str, path or Arrow stream
        A topic or log segments, as in :func:`letterhead.open`; also a table, if the target is a topic.
    target : str or path
        A directory, also in an object store (``s3://bucket/path``, as in :func:`letterhead.open`); a topic
        (``kafka://host:port/topic`` or ``iggy://user:password@host:port/stream/topic``); or a new file that ends with
        ``.parquet``, ``.arrow``, ``.arrows`` or ``.jsonl`` (also ``.jsonl.gz`` and ``.jsonl.zst``). A file appears when it
        is complete, so a killed copy starts it over.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
        The column ``headers`` is kept.
    where : Condition or str, optional
        Condition that selects the records to copy.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        For logs: where to start and to stop, as in :func:`letterhead.read.topic`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a record whose headers do not fit the types in ``headers``, as in :func:`letterhead.open`. The
        column ``headers`` contains its original headers, if they can be read.
    create : bool or int, default False
        Whether to create the topic if it does not exist, with as many partitions as the source, or with this number.
        The new topic gets the settings of the original topic, except ``message.timestamp.type``.
    append : bool, default False
        Whether to write after existing records of a topic. Such a copy cannot continue: a second call copies all records
        again.
    settings : mapping of str to str, or path, optional
        Connection settings, as in :func:`letterhead.read.topic`.
    target_settings : mapping of str to str, or path, optional
        Connection settings of the target; by default the source's settings.
    offsets : str or path, optional
        For topics as targets: a file of JSON lines that maps offsets of the source to offsets of the target. Each line
        describes a run of records: ``partition``, ``offset``, ``target_offset`` and ``records``. If a copy is called again,
        it starts at the last offset in the file, rather than at the beginning of the source.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.
        ``mapping`` is the conversion of Kafka records to Iggy messages (by default without loss), or back. With ``follow``,
        new records are also copied, until the call is interrupted; a directory gets new files every 30 seconds.

    Returns
    -------
    Copied
        The number of written records, and the next offset of each partition.

    Raises
    ------
    ValueError
        If the target is not a copy of the source, or is a copy with other options; or if a broker rejects a record.
    FileExistsError
        If the file exists.

    Examples
    --------
    >>> import letterhead as lh
    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> lh.copy("tests/samples/orders-0", directory, headers={"tenant": "string"}).rows
    10000
    >>> lh.copy("tests/samples/orders-0", directory, headers={"tenant": "string"}).rows
    0
    >>> lh.open(directory, where="tenant = 'acme'").read_all().num_rows
    1390
    """
    copying = copy_of(
        source, target, headers=headers, where=where, start=start, end=end, errors=errors, settings=settings,
        options=options, append=append, offsets=offsets, target_settings=target_settings,
    )  # fmt: skip
    if create is not False:
        copying.create(None if create is True else create)
    with showing_rows(allows_typed=where is None):
        return copying.run()


def copy_of(
    source: SourceLike,
    target: str | os.PathLike[str],
    *,
    headers: Columns | None,
    where: Where | None,
    start: OffsetSpec,
    end: OffsetSpec,
    errors: OnError,
    settings: SettingsLike | None,
    options: ReadOptions,
    target_settings: SettingsLike | None = None,
    **choices: Any,
) -> Copying:
    """Build a copy from the arguments of :func:`copy`; ``choices`` are passed to :class:`Copying`."""
    with install_hint("copying", "letterhead[arrow]"):
        import pyarrow  # noqa: F401
    from letterhead.kafka.settings import reader_values

    opened = open_sources([source])
    request = row_request(
        options, headers=headers, where=where, start=start, end=end, errors=errors, settings=reader_values(settings)
    )
    own = None if target_settings is None else reader_values(target_settings)
    request, target_options = split_options(opened[0], request, os.fspath(target), own)
    check_options(opened, request)
    return Copying(opened[0], request, os.fspath(target), target_options=target_options, **choices)


def split_options(
    source: Source, request: RowRequest, target: str, settings: Mapping[str, Any] | None = None
) -> tuple[RowRequest, TargetOptions]:
    """Return the request for the source, and the options of the target.

    Connection options of the request also apply to the target, unless ``settings`` are passed for it. Options that only
    the target uses are removed from the request.
    """
    used = {"mapping"}
    if is_iggy_address(target):
        used |= {"timeout_ms"}
    elif is_kafka_address(target):
        used |= {"timeout_ms", "settings"}
    target_options = TargetOptions(
        request.mapping, request.settings if settings is None else settings, request.timeout_ms
    )
    unused: dict[str, Any] = dict.fromkeys(used - source.options)
    return replace(request, **unused), target_options
