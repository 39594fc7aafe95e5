"""``letterhead.read.iggy``: read a topic of Apache Iggy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from letterhead._optional_dependencies import install_hint

with install_hint("reading a topic of Iggy", "letterhead[arrow]"):
    import pyarrow  # noqa: F401

from letterhead._row_request import row_request
from letterhead.iggy.address import Address
from letterhead.iggy.client import IggyTopic
from letterhead.sources.base import check_options
from letterhead.sources.iggy import IggyTopicSource

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.where.conditions import Where

__all__ = ["iggy"]


def iggy(
    address: str,
    *,
    stream: str | int,
    topic: str | int,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    **options: Unpack[ReadOptions],
) -> Reader:
    """Read a topic of Apache Iggy into Arrow, without a Python object per message.

    Rows come partition by partition, in the order of their offsets, up to the last offsets at the time of the first
    batch. The server stores no consumer offset. The next poll runs while the current one is decoded. Memory is about
    eight times ``fetch_bytes``, regardless of the number of messages. A lost connection is opened again.

    Parameters
    ----------
    address : str
        ``iggy://user:password@host:port``, or ``iggy://token@host:port`` with a personal access token. Special
        characters are percent-encoded; the default port is 8090. ``?tls=true`` encrypts the connection; ``tls_ca_file``
        is a file of trusted certificates, and ``tls_domain`` the name in the server's certificate if it differs from
        the host.
    stream, topic : str or int
        Name or number of the stream, and of the topic in the stream.
    columns : sequence of str, optional
        Columns to return, in order, of ``stream topic partition offset timestamp origin_timestamp id headers payload
        checksum``. Other columns are not built. By default all but the checksum, without ``headers`` if the argument
        ``headers`` is given. Timestamps are in microseconds: when the server stored the message, and when it was created.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    where : Condition or str, optional
        Condition that selects the messages: on headers and on ``stream topic
        partition offset timestamp origin_timestamp id payload checksum``. Bounds of the offset and the timestamp
        limit the polled messages.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        Where to start and where to stop, as in :func:`letterhead.read.topic`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Reader
        An Arrow stream and a context manager. It connects when the first batch is read.

    Raises
    ------
    TypeError, ValueError
        If an option is invalid, or two columns would have the same name. While reading, if the stream, the topic, a
        partition or an offset does not exist.
    OffsetsGone
        While reading, if messages were deleted before they were read.
    PermissionError
        While reading, if the server rejects the user, or the user lacks permission to read the topic.
    ConnectionError, TimeoutError
        While reading, if a certificate is not trusted, or the server does not respond in time.
    ProtocolError
        While reading, if a reply of the server is invalid, or is of another topic or partition.
    RuntimeError
        While reading, if the server responds with another error.
    DecodeError
        While reading, if a message is invalid and ``errors="raise"``.

    Examples
    --------
    >>> with lh.read.iggy(
    ...     "iggy://iggy:iggy@127.0.0.1:8090", stream="shop", topic="orders", headers={"tenant": "string"}
    ... ) as reader:  # doctest: +SKIP
    ...     table = reader.read_all()
    """
    source = IggyTopicSource(
        f"topic {topic} of stream {stream}", Address.parse(address), IggyTopic(stream, topic), None
    )
    request = row_request(options, columns=columns, headers=headers, where=where, start=start, end=end, errors=errors)
    check_options([source], request)
    return source.reader(request)
