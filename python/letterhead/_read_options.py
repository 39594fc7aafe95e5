"""Less common options for reading, which all reading functions accept by name: :class:`ReadOptions`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from letterhead.kafka.oauth import TokenProvider
    from letterhead.limits import Limits

__all__ = ["ReadOptions"]


class ReadOptions(TypedDict, total=False):
    """Options that select, tune and limit what is read.

    :func:`letterhead.open`, :func:`~letterhead.copy`, :func:`~letterhead.diff` and :mod:`letterhead.read` accept each by name.
    An option that a source does not support raises ValueError, unless it has its default value.

    Attributes
    ----------
    last : int, optional
        Maximum number of rows to read from the end of each partition, among the rows that the other options select.
    follow : bool, default False
        For topics: after the last row, wait for new rows, and return them as they arrive, until the reader is closed.
        Partitions that are added later are not read.
    partitions : iterable of int, optional
        For topics and log segments: partitions to read; by default all.
    commit_group : str, optional
        For topics of Kafka: a consumer group to which the read offsets are committed, so that tools show its lag. It must
        have no active consumers. The offsets of a fetch are committed when the batch after its rows is requested, and the
        last ones at the end. After an early end, ``start="group:NAME"`` can repeat rows, but skips none;
        ``reader.close_after(rows)`` commits the offsets of the last batch's first rows. ``read_all`` returns after
        everything is committed, so read batch by batch if processing the rows can fail.
    isolation_level : {"read_uncommitted", "read_committed"}, optional
        For Kafka: ``"read_committed"`` skips records of aborted transactions, and stops before the oldest open transaction,
        which a reader of segments lists in ``open_transactions``. By default ``isolation.level`` of the settings, or
        ``"read_uncommitted"``.
    ignore_crc : bool, default False
        For log segments of Kafka, with ``errors="column"``: read the records of a batch with a wrong checksum; each has the
        error ``bad_crc``, and may be damaged.
    mapping : {"kafka-gateway", "kafka-gateway-lossless"}, optional
        For topics of Iggy: read messages as Kafka records, if Iggy's Kafka gateway or :func:`letterhead.write.iggy` wrote
        them in this form. The columns are ``stream topic partition offset timestamp key value headers``, with the timestamp
        in milliseconds. Both names read the same messages, by version 1 of the gateway's proposal. Any other message
        becomes a record without a key. Conditions test the fields and headers of the records; all messages are polled.
    store : str, optional
        For state directories: read only the stores of this name, in all tasks. Required if the directory contains
        stores of several types.
    store_type : str, optional
        For state directories: the type of a store, if the files do not determine it: ``key-value``, ``window``,
        ``session``, ``versioned``, ``time-ordered-window`` or ``time-ordered-session``.
    values : {"plain", "timestamped"}, optional
        For state directories: the format of values of time-ordered windows without headers, which files do not contain.
    window_size : int, optional
        For state directories: the length of a window in milliseconds, which files do not contain.
    error_column : str, default "error"
        Name of the error column with ``errors="column"``.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.
    token_provider : callable, optional
        For Kafka with ``sasl.mechanism=OAUTHBEARER``: a function without arguments that returns a token. It is called in
        another thread before a token expires; a token that is not a JSON web token is renewed every four minutes.
    timeout_ms : int, optional
        For topics: time limit of a request, including name lookup, connection, authentication and retries of temporary
        errors. By default ``default.api.timeout.ms`` of Kafka's settings, or 60 000.
    fetch_bytes : int, optional
        For topics: the size of a fetch in bytes, approximate for Iggy; by default 4 MiB, or ``max.partition.fetch.bytes``
        of Kafka's settings if it is larger.
    batch_bytes : int, optional
        For topics of Kafka: stored bytes per batch of rows; at least one record batch of the topic. By default 1 MiB, and
        up to eight times as many while ``where`` selects few records.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.open("tests/samples/orders-0", columns=["offset"], last=2).read_all().to_pydict()
    {'offset': [9998, 9999]}
    """

    last: int | None
    follow: bool
    partitions: Iterable[int] | None
    commit_group: str | None
    isolation_level: Literal["read_uncommitted", "read_committed"] | None
    ignore_crc: bool
    mapping: Literal["kafka-gateway", "kafka-gateway-lossless"] | None
    store: str | None
    store_type: str | None
    values: str | None
    window_size: int | None
    error_column: str
    limits: Limits | None
    token_provider: TokenProvider | None
    timeout_ms: int | None
    fetch_bytes: int | None
    batch_bytes: int | None
