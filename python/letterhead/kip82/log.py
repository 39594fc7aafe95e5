"""Message log of the drafts in a directory: append, read, compact, and handle produce and fetch requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from letterhead._clock import now_ms
from letterhead._context_managers import Closing
from letterhead._names import check_name, unknown_name
from letterhead._read_once import ReadOnce
from letterhead.errors import ConversionError, Damage, DamagedLogError, DecodeError, EncodeError, HeaderError
from letterhead.kip82.compaction import (
    DELETE_RETENTION_MS,
    Keyless,
    delete_horizon,
    is_delete,
    latest_offsets,
    should_retain,
)
from letterhead.kip82.header_formats import CODECS, MESSAGE_FORMATS, Codec, HeaderFormat, check_header_format
from letterhead.kip82.interceptors import ProducerInterceptor, ProducerInterceptors
from letterhead.kip82.log_files import Compacted, LogFiles
from letterhead.kip82.properties import RequestedProperties, check_format_version
from letterhead.kip82.records import ProducerRecord, RecordMetadata
from letterhead.kip82.requests import (
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from letterhead.kip82.segment import StoredMessages
from letterhead.kip82.versions import (
    CODEC_BITS,
    LOG_APPEND_BIT,
    MAGIC,
    VERSIONS,
    convert_down,
    convert_up,
    header_format_of,
    pack,
    write_converted,
    write_message,
)
from letterhead.message import Message
from letterhead.results import Types

__all__ = ["Compacted", "MessageLog"]

_Appendable: TypeAlias = Message | Mapping[str, Any] | ProducerRecord[Any, Any]

_FIELDS = dict.fromkeys(("crc", "magic", "attributes", "timestamp", "key", "headers", "value", "tombstone"))


class MessageLog(Closing):
    """A partition of a topic, stored in a directory.

    One object at a time may write to a log; any number may read it (``readonly=True``). Threads may share an object. A
    log is not a server and has no thread: it handles requests of the program that opened it.

    A directory of Kafka 0.8 to 0.10 can be opened, with its messages of magic 0 and 1 and its compressed sets. Stop the
    broker first. Opening such a log for writing adds a ``log.json`` to the directory.

    Parameters
    ----------
    path : str or Path
        The directory. It is created if it does not exist.
    header_format : {"typed", "int", "wrapper"}, optional
        Header format of the messages of magic 2. It is fixed when the log is created; the default is ``"typed"``.
    topic : str, optional
        Name of the topic; by default the first part of a directory name such as ``orders-0``.
    partition : int, optional
        Number of the partition; by default the last part of the directory name.
    readonly : bool, default False
        Only read the messages that exist when the log is opened: nothing is truncated, locked or written.
    segment_bytes : int, default 64 MiB
        Size limit of a file; a message that would exceed it begins a new file.
    max_message_bytes : int, default 1,000,012
        Maximum size of a message, and of the content of a compressed set; by default the limit of Kafka's brokers.
    message_format_version : {0, 1, 2}, optional
        Magic of the messages that are appended, like the topic setting ``message.format.version`` of Kafka 0.10: 0 for
        Kafka 0.8 and 0.9 (no timestamps), 1 for Kafka 0.10, 2 for the drafts. By default the log's last value, and 2
        for a new log. Stored messages are not rewritten. Versions 0 and 1 have no headers, see ``on_loss``.
    codec : {"none", "gzip", "snappy", "lz4"}, default "none"
        Compression of appended messages, like the topic setting ``compression.type``: the messages of an append or a
        produce request become one set.
    sync : {"append", "flush"}, default "append"
        When appended messages are flushed to disk: before :meth:`append` returns, or at :meth:`flush`, at the end of a
        file and on close. Neither loses messages if the program is killed; ``"flush"`` may lose some in a power failure.
    timestamps : {"create", "append"}, default "create"
        Whether a message keeps its timestamp, or gets the time of the append, marked by attribute bit 3.
    errors : {"raise", "move"}, default "raise"
        What to do if the last file ends with damaged bytes that an interrupted append cannot explain. ``"move"`` moves
        them to a file ``….damaged-<position>`` in the same directory, unless they contain a message with a valid
        checksum.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with headers that cannot be stored, because a request has another header format, or because the log
        writes messages of magic 0 or 1, which have no headers. ``"drop"`` also turns a null value that is not a delete
        (possible in the header format ``wrapper`` only) into a delete.
    types_in, types_out : {"be", "le", "text", "binary"} or mapping of key to type, optional
        Type conversions between header formats, as in :func:`letterhead.convert`, for headers in produce requests
        (``types_in``) and in fetch responses (``types_out``).
    interceptors : ProducerInterceptors or iterable of ProducerInterceptor, optional
        Called for every message before :meth:`append` writes it, and with the result. They are not called for requests,
        because a producer has its own interceptors.

    Attributes
    ----------
    path : Path
        The directory.
    header_format, topic, partition, message_format_version
        The values of the opened log.
    truncated_tail : Damage or None
        Interrupted append or damaged end that was truncated on opening. With ``readonly=True``, the interrupted append
        that opening for writing would truncate.

    Raises
    ------
    LogLockedError
        If another object writes to the log.
    DamagedLogError
        If the last file ends with damaged bytes that an interrupted append cannot explain, and ``errors="raise"`` or
        they contain a message with a valid checksum.
    MessageLogError
        If the directory is not a log, or has another header format, topic or partition.
    ValueError
        If an option has an unknown value, or does not apply to the header format.

    Examples
    --------
    >>> import tempfile
    >>> import letterhead as lh
    >>> from letterhead.kip82 import MessageLog
    >>> with MessageLog(tempfile.mkdtemp() + "/orders-0") as log:
    ...     print(log.append([{"key": b"a", "value": b"1", "headers": {"retry": lh.Int32(3)}}, {"key": b"b"}]))
    ...     print([(message.offset, message.key, message.headers) for message in log.scan()])
    range(0, 2)
    [(0, b'a', Headers([('retry', Int32(3))])), (1, b'b', Headers([]))]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header_format: HeaderFormat | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        readonly: bool = False,
        segment_bytes: int = 64 << 20,
        max_message_bytes: int = 1_000_012,
        sync: Literal["append", "flush"] = "append",
        timestamps: Literal["create", "append"] = "create",
        errors: Literal["raise", "move"] = "raise",
        message_format_version: Literal[0, 1, 2] | None = None,
        codec: Codec = "none",
        on_loss: Literal["raise", "drop"] = "raise",
        types_in: Types | None = None,
        types_out: Types | None = None,
        interceptors: ProducerInterceptors | Iterable[ProducerInterceptor] = (),
    ) -> None:
        if header_format is not None:
            check_header_format(header_format)
        check_name("sync value", sync, ("append", "flush"))
        check_name("timestamps value", timestamps, ("create", "append"))
        check_name("errors", errors, ("raise", "move"))
        check_name("on_loss value", on_loss, ("raise", "drop"))
        check_name("codec", codec, CODECS)
        if message_format_version is not None:
            check_format_version(message_format_version)
        for name, number in (("segment_bytes", segment_bytes), ("max_message_bytes", max_message_bytes)):
            if number < 1:
                raise ValueError(f"{name} must be 1 or more, not {number}")
        self.path = Path(path)
        self.readonly = readonly
        self._max_message_bytes = max_message_bytes
        self._log_append_time = timestamps == "append"
        self._codec = CODECS.index(codec)
        self._interceptors = ProducerInterceptors._from(interceptors)
        self._options_in: dict[str, Any] = {"on_loss": on_loss, "types": types_in}
        self._options_out: dict[str, Any] = {"on_loss": on_loss, "types": types_out}
        self._files = LogFiles(
            self.path,
            RequestedProperties(header_format, topic, partition, message_format_version),
            readonly=readonly,
            segment_bytes=segment_bytes,
            sync=sync == "append",
            move_damaged=errors == "move",
        )
        self.header_format: HeaderFormat = self._files.properties.header_format
        self.topic = self._files.properties.topic
        self.partition = self._files.properties.partition
        self.message_format_version = self._files.properties.message_format_version
        self.truncated_tail = self._files.truncated_tail
        try:
            self._check_types()
        except BaseException:
            self._files.release()
            raise

    def __repr__(self) -> str:
        return f"<MessageLog {self.path}: {self.header_format}, next offset {self.next_offset}, {self._files.state()}>"

    @property
    def next_offset(self) -> int:
        """The offset of the next message to be appended."""
        return self._files.next_offset

    def close(self) -> None:
        """Flush to disk, release all files, and close the interceptors. A second call does nothing."""
        with self._files.guard:
            self._files.close()
            interceptors, self._interceptors = self._interceptors, ProducerInterceptors()
        interceptors.close()

    # Writing ------------------------------------------------------------------------------------------------------

    def append(self, messages: Iterable[Message | Mapping[str, Any] | ProducerRecord[Any, Any]]) -> range:
        """Append messages, all or none.

        Parameters
        ----------
        messages : iterable of Message, mapping or ProducerRecord
            The fields of ``kip82-message*``: key, value, headers, timestamp (milliseconds since 1970; by default the
            current time), and tombstone in the header format ``wrapper``. The log assigns offsets and checksums, and
            converts messages of another magic. Records must have the log's topic and header format.

        Returns
        -------
        range
            Offsets of the messages. With ``sync="append"``, the messages are on disk.

        Raises
        ------
        EncodeError, ConversionError
            If a message cannot be encoded, or is too large (``too_large``); nothing is appended.
        ValueError
            If a field is unknown, or a record is not for this log; nothing is appended.
        LogClosedError
            If the log is closed.
        OSError
            If writing fails; nothing is appended.
        """
        if not self._interceptors:
            with self._files.guard:
                return self._append(messages, now_ms())
        offsets = range(0)

        def write(records: list[ProducerRecord[Any, Any]]) -> list[RecordMetadata]:
            nonlocal offsets
            with self._files.guard:
                now = now_ms()
                offsets = self._append(records, now)
            times = (
                now if self._log_append_time or record.timestamp is None else record.timestamp for record in records
            )
            return [
                RecordMetadata(self.topic, self.partition, offset, timestamp)
                for offset, timestamp in zip(offsets, times, strict=True)
            ]

        self._interceptors._around(map(self._record, messages), write)
        return offsets

    def _record(self, item: _Appendable) -> ProducerRecord[Any, Any]:
        """Convert a message to be appended to a record for interceptors."""
        if isinstance(item, ProducerRecord):
            return item
        fields = {"offset": 0, **_FIELDS}
        for name, value in self._fields_of(item).items():
            if name not in fields:
                raise unknown_name("field", name, fields)
            fields[name] = value
        if fields["magic"] == 0:
            fields["timestamp"] = -1  # magic 0 has no timestamp, and must not get the current time
        message = convert_up(Message(**fields), self.header_format)
        return ProducerRecord(
            self.topic,
            message.key,
            message.value,
            timestamp=message.timestamp,
            headers=message.headers,
            header_format=self.header_format,
            tombstone=is_delete(message) if self.header_format == "wrapper" else None,
        )

    def _append(self, messages: Iterable[_Appendable], now: int) -> range:
        self._files.check_open(writing=True)
        encoded = []
        for offset, item in enumerate(messages, self._files.next_offset):
            fields = {**_FIELDS, **self._fields_of(item), "offset": offset}
            if fields["timestamp"] is None and fields["magic"] != 0:
                fields["timestamp"] = now
            message = Message(**fields)
            if self.header_format == "wrapper" and message.tombstone is None and message.magic in (None, 2):
                message = message._replace(tombstone=is_delete(message))
            encoded.append(self._encode(message, self.header_format, now))
        return self._files.write(self._compress(encoded))

    def _fields_of(self, item: _Appendable) -> Mapping[str, Any]:
        if isinstance(item, ProducerRecord):
            other_partition = item.partition not in (None, self.partition)
            if other_partition or (item.topic, item.header_format) != (self.topic, self.header_format):
                raise ValueError(
                    f"this log is {self.topic}-{self.partition} as {self.header_format}: a record is for topic "
                    f"{item.topic}, partition {item.partition}, as {item.header_format}"
                )
            item = item.to_message()
        fields = item._asdict() if isinstance(item, Message) else item
        # A null value with null headers would be a delete, as in `encode`.
        return {"headers": (), **fields} if fields.get("tombstone") is False else fields

    def flush(self) -> None:
        """Flush appended messages to disk.

        An ``OSError`` closes the log: open it again to see which messages are on disk.
        """
        with self._files.guard:
            self._files.check_open(writing=True)
            self._files.flush()

    def produce(self, request: ProduceRequest) -> ProduceResponse:
        """Append the messages of a request, all or none of each partition.

        Messages are converted to the magic that the log writes; older messages get no headers. Compressed sets are
        decompressed, and their messages are written with the codec of the log.

        The response has the version of the request. If nothing was appended to a partition, its result has an error code
        and a reason, which :meth:`ProduceResponse.raise_for_error` raises. With ``acks=-1``, the messages are on disk
        when this method returns.

        Raises
        ------
        LogClosedError
            If the log is closed.
        OSError
            If writing fails; nothing is appended.
        """
        with self._files.guard:
            self._files.check_open(writing=True)
            topics = request._answer(lambda topic, sent: self._produce(request, topic, sent))
            if request.acks == -1:
                self._files.flush()
            return ProduceResponse(version=request.version, topics=topics)

    def _produce(self, request: ProduceRequest, topic: str, sent: ProducePartition) -> ProduceResult:
        def failed(code: ErrorCode, reason: object) -> ProduceResult:
            return ProduceResult(sent.partition, code, -1, reason=str(reason))

        if (topic, sent.partition) != (self.topic, self.partition):
            return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this log is {self.topic}-{self.partition}")
        now, version = now_ms(), request.version
        header_format = header_format_of(version, self.header_format, self.header_format)
        try:
            encoded = []
            for number, message in enumerate(sent.messages(version, self.header_format)):
                if message.magic == 2 and MAGIC[version] < 2:
                    reason = f"message {number} is of magic {message.magic}, which version {version} does not have"
                    return failed(ErrorCode.CORRUPT_MESSAGE, reason)
                encoded.append(
                    self._encode(message._replace(offset=self._files.next_offset + number), header_format, now)
                )
        except DecodeError as error:
            return failed(ErrorCode.CORRUPT_MESSAGE, error)
        except (ConversionError, EncodeError) as error:
            large = error.code == "too_large"
            return failed(ErrorCode.MESSAGE_TOO_LARGE if large else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, error)
        offsets = self._files.write(self._compress(encoded))
        return ProduceResult(sent.partition, ErrorCode.NONE, offsets.start, now if self._log_append_time else -1)

    def _encode(self, message: Message, header_format: HeaderFormat, now: int) -> bytes:
        """Encode a message without compression, in the header format of the log."""
        if message.magic is not None and message.magic < 2:
            header_format = self.header_format  # a message without headers fits every header format
        message = convert_up(message, header_format)
        attributes = (message.attributes or 0) & ~LOG_APPEND_BIT
        if self._log_append_time:
            message = message._replace(timestamp=now, attributes=attributes | LOG_APPEND_BIT)
        else:
            message = message._replace(attributes=attributes)
        if self.message_format_version == 2:
            data = write_converted(message, header_format, self.header_format, **self._options_in)
        else:
            data = self._encode_older(message)
        if len(data) > self._max_message_bytes:
            raise EncodeError(
                f"the message has {len(data)} bytes, and the log takes {self._max_message_bytes} (max_message_bytes)",
                format=MESSAGE_FORMATS[self.header_format],
                code="too_large",
            )
        return data

    def _encode_older(self, message: Message) -> bytes:
        """Encode a message in magic 0 or 1, which supports neither headers nor deletes with a value."""
        magic = self.message_format_version
        on_loss = self._options_in["on_loss"]
        older = convert_down(message, magic, on_loss=on_loss)
        if on_loss == "raise" and (message.headers or older.value != message.value):
            lost = "headers" if message.headers else "value of a delete"
            raise ConversionError(
                f"magic {magic} has no {lost}: open the log with message_format_version=2, or with on_loss='drop'",
                format=MESSAGE_FORMATS[self.header_format],
                code="field_not_carried",
            )
        return write_message(older, self.header_format)

    def _compress(self, encoded: list[bytes]) -> list[bytes]:
        """Compress messages into sets with at most ``max_message_bytes`` of content each, if the log has a codec."""
        if not self._codec:
            return encoded
        sets: list[list[bytes]] = []
        size = 0
        for data in encoded:
            size += len(data)
            if not sets or size > self._max_message_bytes:
                sets.append([])
                size = len(data)
            sets[-1].append(data)
        attributes = self._codec | (LOG_APPEND_BIT if self._log_append_time else 0)
        return [pack(b"".join(members), self.header_format, attributes) for members in sets]

    # Reading ------------------------------------------------------------------------------------------------------

    def scan(self, start: int = 0, *, on_error: Callable[[Damage], object] | None = None) -> Iterator[Message]:
        """Read messages, up to the last message in the log when reading begins.

        Parameters
        ----------
        start : int, default 0
            Offset of the first message. If compaction has removed it, reading starts with the next message.
        on_error : callable, optional
            Called with a :class:`Damage` for bytes that are not a message, for example ``damages.append``; reading
            continues with the next complete message. By default the first damage is raised.

        Yields
        ------
        Message
            The messages, with the fields of ``kip82-message*``.

        Raises
        ------
        DamagedLogError
            If bytes are not a message and there is no ``on_error``; raised after the preceding messages.
        LogClosedError
            If the log is closed.
        """
        stored = self._files.read(start, on_error)
        messages = (message for entry in stored for message in entry.messages if message.offset >= start)
        return ReadOnce(messages, "the scan of the log")

    def verify(self) -> list[Damage]:
        """Read the whole log, and return all damage."""
        damages: list[Damage] = []
        for _ in self._files.read(0, damages.append):
            pass
        return damages

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Return messages for a request.

        Messages newer than the version supports are converted down and lose their headers; older messages are returned
        as stored. A response contains complete messages, at least one if available, regardless of ``max_bytes``; a log
        does not wait for more. As in Kafka, a compressed set is returned as a whole, so it may begin before the requested
        offset. If the version would turn a null value into a delete, this is an error unless ``on_loss="drop"``.

        The response has the version of the request. For a partition that cannot be read, the response has an error code
        and a reason, which :meth:`FetchResponse.messages` raises. Raises ``LogClosedError`` if the log is closed.
        """
        self._files.check_open()
        topics = request._answer(lambda topic, partition: self._fetch(request.version, topic, partition))
        return FetchResponse(version=request.version, topics=topics)

    def _fetch(self, version: int, topic: str, partition: FetchPartition) -> FetchResult:
        def failed(code: ErrorCode, reason: object, end: int = -1) -> FetchResult:
            return FetchResult(partition.partition, code, end, b"", reason=str(reason))

        if (topic, partition.partition) != (self.topic, self.partition):
            return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this log is {self.topic}-{self.partition}")
        end = self._files.next_offset
        if not 0 <= partition.offset <= end:
            return failed(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {partition.offset} is not in 0 to {end}", end)
        chunks: list[bytes] = []
        size = 0
        try:
            for stored in self._files.read(partition.offset, None):
                data = self._convert_for(version, stored)
                if chunks and size + len(data) > partition.max_bytes:
                    break
                chunks.append(data)
                size += len(data)
        except (DamagedLogError, HeaderError) as error:
            # Return the messages before the error first; the next request reports the error.
            if not chunks:
                damaged = isinstance(error, DamagedLogError)
                code = ErrorCode.CORRUPT_MESSAGE if damaged else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
                return failed(code, error, end)
        return FetchResult(partition.partition, ErrorCode.NONE, end, b"".join(chunks))

    def _convert_for(self, version: int, stored: StoredMessages) -> bytes:
        """Return a stored message or compressed set in the format of a request's version."""
        target = header_format_of(version, self.header_format, self.header_format)
        if stored.magic <= MAGIC[version] and (stored.magic < 2 or target == self.header_format):
            return stored.data
        if MAGIC[version] < 2:
            on_loss = self._options_out["on_loss"]
            older = (convert_down(message, MAGIC[version], on_loss=on_loss) for message in stored.messages)
            encoded = [write_message(message, target) for message in older]
        else:
            encoded = [
                write_converted(message, self.header_format, target, **self._options_out) for message in stored.messages
            ]
        data = b"".join(encoded)
        return pack(data, target, stored.attributes) if stored.attributes & CODEC_BITS else data

    # Compaction ---------------------------------------------------------------------------------------------------

    def compact(
        self, *, now: int | None = None, delete_retention_ms: int = DELETE_RETENTION_MS, keyless: Keyless = "keep"
    ) -> Compacted:
        """Remove messages replaced by a later message with the same key, and deletes after their retention time.

        The offsets and bytes of retained messages do not change; a compressed set that loses messages is compressed
        again. Files are replaced one by one, the oldest first, so that no replaced message reappears after a crash.

        Parameters
        ----------
        now : int, optional
            Milliseconds since 1970; by default the current time.
        delete_retention_ms : int, default 86400000
            Milliseconds for which a delete is retained, counted from its timestamp.
        keyless : {"keep", "drop"}, default "keep"
            What to do with messages without a key.

        Raises
        ------
        DamagedLogError
            If the log is damaged; nothing is changed.
        LogClosedError
            If the log is closed.
        OSError
            If writing fails.
        """
        horizon = delete_horizon(now, delete_retention_ms)
        check_name("keyless value", keyless, ("keep", "drop"))
        with self._files.guard:
            self._files.check_open(writing=True)
            latest = latest_offsets(self.scan())
            return self._files.keep(lambda message: should_retain(message, latest, horizon, keyless=keyless))

    def _check_types(self) -> None:
        """Raise on opening, not at the first request, if ``types_in`` or ``types_out`` do not fit the header formats."""
        empty = Message(offset=None, **_FIELDS)
        for version in VERSIONS:
            requested = header_format_of(version, self.header_format, self.header_format)
            if requested != self.header_format:
                write_converted(empty, requested, self.header_format, **self._options_in)
                write_converted(empty, self.header_format, requested, **self._options_out)
