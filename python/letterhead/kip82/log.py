"""A log of draft messages on disk, within a program: appended to, read, compacted, asked by requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from letterhead._context_managers import Closing
from letterhead.errors import (
    ConversionError,
    Damage,
    DamagedLogError,
    DecodeError,
    EncodeError,
    HeaderError,
    check_name,
    unknown_name,
)
from letterhead.kip82.compaction import DELETE_RETENTION_MS, Keyless, delete_horizon, should_retain
from letterhead.kip82.fetch import AskedPartition, FetchedPartition, FetchRequest, FetchResponse
from letterhead.kip82.interceptors import ProducerInterceptor, ProducerInterceptors
from letterhead.kip82.layouts import CODECS, MESSAGES, Codec, Layout, check_layout
from letterhead.kip82.produce import ProducedPartition, ProduceRequest, ProduceResponse, SentPartition
from letterhead.kip82.properties import check_format_version
from letterhead.kip82.records import ProducerRecord, RecordMetadata
from letterhead.kip82.requests import ErrorCode, Topic
from letterhead.kip82.segment import Stored
from letterhead.kip82.store import Compacted, Store
from letterhead.kip82.versions import (
    CODEC_BITS,
    LOG_APPEND_BIT,
    MAGIC,
    VERSIONS,
    carry,
    convert_down,
    convert_up,
    layout_of,
    pack,
    write_message,
)
from letterhead.message import Message
from letterhead.results import Types

__all__ = ["Compacted", "MessageLog"]


class MessageLog(Closing):
    """A partition of a topic, in a directory.

    One object at a time may write to a log; any number may read it (``readonly=True``). Threads may share an object. It is
    no server, has no thread, and answers requests from the program that it is in.

    A directory that Kafka 0.8 to 0.10 wrote is opened as it is, with its messages of magic 0 and 1 and its compressed sets.
    Stop the broker first. Opening the log to write adds a ``log.json`` to the directory.

    Parameters
    ----------
    path : str or Path
        The directory. Where it is not there, it is made.
    layout : {"typed", "int", "wrapper"}, optional
        Layout of the messages of magic 2. A log keeps the one that it was made with, by default ``"typed"``.
    topic : str, optional
        Name of the topic, for requests: by default what the name of the directory begins with, ``orders-0``.
    partition : int, optional
        Number of the partition: by default what the name of the directory ends with.
    readonly : bool, default False
        Only read: nothing is cut, locked or written. What is there when the log is opened is what is read.
    segment_bytes : int, default 64 MiB
        A file that would become larger is left, and a new one begun.
    max_message_bytes : int, default 1,000,012
        Larger messages are refused, as Kafka's brokers do by default. Also the most content of a compressed set.
    message_format_version : {0, 1, 2}, optional
        Magic of the messages that are appended, like the topic setting ``message.format.version`` of Kafka 0.10: 0 for
        Kafka 0.8 and 0.9 (no timestamps), 1 for Kafka 0.10, 2 for the drafts. By default the log's last value, 2 for a
        log that has none. Stored messages are not rewritten. Versions 0 and 1 have no headers, see ``on_loss``.
    codec : {"none", "gzip", "snappy", "lz4"}, default "none"
        How appended messages are compressed, like the topic setting ``compression.type``: the messages of an append or a
        produce request become one set.
    sync : {"append", "flush"}, default "append"
        When the disk is made to have what was appended: before :meth:`append` returns, or at :meth:`flush`, at the end of
        a file and on close. A program that is killed loses nothing that was appended either way; a computer that loses its
        power may, with ``"flush"``.
    timestamps : {"create", "append"}, default "create"
        Whose time a message has: its own, or that of the append, which attribute bit 3 then says.
    damaged_tail : {"raise", "cut"}, default "raise"
        What to do if the last file ends with bytes that are no message and are not what a crash leaves of an append.
        ``"cut"`` moves them to a file ``….damaged-<position>`` beside it, unless there is a message among them whose
        checksum holds.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with headers that cannot be kept: where a request is of another layout than the log, and where the
        log writes messages of magic 0 or 1, which have none.
    types_in, types_out : {"be", "le", "text", "binary"} or mapping of key to type, optional
        What becomes of types then, as in :func:`letterhead.convert`: of the headers that a produce request brings, and of
        those that a fetch takes away.
    interceptors : ProducerInterceptors or iterable of ProducerInterceptor, optional
        They see every message before :meth:`append` writes it, and learn where it was written or why it was not. Requests
        come from a producer that has interceptors of its own.

    Attributes
    ----------
    path : Path
        The directory.
    layout, topic, partition, message_format_version
        As they are.
    torn_tail : Damage or None
        What was cut off at the end when the log was opened; reading only, what would be.

    Raises
    ------
    LogLockedError
        If another object writes to it.
    DamagedLogError
        If the last file ends in a way that no crash leaves, and ``damaged_tail="raise"`` or a message is there whose
        checksum holds.
    MessageLogError
        If the directory is no log, or has another layout, topic or partition.
    ValueError
        If an option is misspelt, or ``types_in`` or ``types_out`` make no sense for the layout.

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
        layout: Layout | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        readonly: bool = False,
        segment_bytes: int = 64 << 20,
        max_message_bytes: int = 1_000_012,
        sync: Literal["append", "flush"] = "append",
        timestamps: Literal["create", "append"] = "create",
        damaged_tail: Literal["raise", "cut"] = "raise",
        message_format_version: Literal[0, 1, 2] | None = None,
        codec: Codec = "none",
        on_loss: Literal["raise", "drop"] = "raise",
        types_in: Types | None = None,
        types_out: Types | None = None,
        interceptors: ProducerInterceptors | Iterable[ProducerInterceptor] = (),
    ) -> None:
        if layout is not None:
            check_layout(layout)
        check_name("sync value", sync, ("append", "flush"))
        check_name("timestamps value", timestamps, ("create", "append"))
        check_name("damaged_tail value", damaged_tail, ("raise", "cut"))
        check_name("on_loss value", on_loss, ("raise", "drop"))
        check_name("codec", codec, CODECS)
        if message_format_version is not None:
            check_format_version(message_format_version)
        self.path = Path(path)
        self.readonly = readonly
        self._max_message_bytes = max_message_bytes
        self._log_append_time = timestamps == "append"
        self._codec = CODECS.index(codec)
        self._interceptors = ProducerInterceptors.of(interceptors)
        self._crossing_in: dict[str, Any] = {"on_loss": on_loss, "types": types_in}
        self._crossing_out: dict[str, Any] = {"on_loss": on_loss, "types": types_out}
        self._store = Store(
            self.path,
            (layout, topic, partition, message_format_version),
            readonly=readonly,
            segment_bytes=segment_bytes,
            sync=sync == "append",
            cut_damaged=damaged_tail == "cut",
        )
        self.layout: Layout = self._store.properties.layout
        self.topic = self._store.properties.topic
        self.partition = self._store.properties.partition
        self.message_format_version = self._store.properties.message_format_version
        self.torn_tail = self._store.torn_tail
        try:
            self._check_crossing()
        except BaseException:
            self._store.release()
            raise

    def __repr__(self) -> str:
        what = f"{self.layout}, next offset {self.next_offset}, {self._store.state()}"
        return f"<MessageLog {self.path}: {what}>"

    @property
    def next_offset(self) -> int:
        """The offset that the next message gets."""
        return self._store.next_offset

    def close(self) -> None:
        """Sync what was written, release all files, and close the interceptors. A second call does nothing."""
        with self._store.guard:
            self._store.close()
            interceptors, self._interceptors = self._interceptors, ProducerInterceptors()
        interceptors.close()

    # Writing ------------------------------------------------------------------------------------------------------

    def append(self, messages: Iterable[Message | Mapping[str, Any] | ProducerRecord[Any, Any]]) -> range:
        """Append messages: all of them, or none.

        Parameters
        ----------
        messages : iterable of Message, mapping or ProducerRecord
            The fields of ``kip82-message*``: key, value, headers, timestamp (milliseconds; by default now), tombstone in the
            wrapper layout. Offset and checksum are the log's. Messages of another magic than the log writes are
            converted to it. Records must be of the log's topic and layout.

        Returns
        -------
        range
            Their offsets. They are on disk, with ``sync="append"``.

        Raises
        ------
        EncodeError, ConversionError
            If a message cannot be written, or is too large (``too_large``); nothing is appended then.
        ValueError
            If a field is misspelt, or a record is not for this log; nothing is appended then.
        LogClosedError
            If the log is closed.
        OSError
            If the disk does not take them; nothing is appended then, either.
        """
        if not self._interceptors:
            return self._append(messages)
        offsets = range(0)

        def write(records: list[ProducerRecord[Any, Any]]) -> list[RecordMetadata]:
            nonlocal offsets
            with self._store.guard:
                now = _now()
                offsets = self._append(records, now)
            times = (
                now if self._log_append_time or record.timestamp is None else record.timestamp for record in records
            )
            return [RecordMetadata(self.topic, self.partition, *each) for each in zip(offsets, times, strict=True)]

        self._interceptors.around(map(self._record, messages), write)
        return offsets

    def _record(self, given: Message | Mapping[str, Any] | ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return a message that was handed in as the record that interceptors see."""
        if isinstance(given, ProducerRecord):
            return given
        fields = {"offset": 0, **dict.fromkeys(_FIELDS)}
        for name, value in self._said(given).items():
            if name not in fields:
                raise unknown_name("field", name, fields)
            fields[name] = value
        if fields["magic"] == 0:
            fields["timestamp"] = -1  # magic 0 has none, and the present is not it
        message = convert_up(Message(**fields), self.layout)
        return ProducerRecord(
            self.topic,
            message.key,
            message.value,
            timestamp=message.timestamp,
            headers=message.headers,
            layout=self.layout,
            tombstone=bool(message.tombstone) if self.layout == "wrapper" else None,
        )

    def _append(
        self, messages: Iterable[Message | Mapping[str, Any] | ProducerRecord[Any, Any]], now: int | None = None
    ) -> range:
        with self._store.guard:
            self._store.check_open(writing=True)
            now = now or _now()
            cells = []
            for number, given in enumerate(messages):
                fields = {**dict.fromkeys(_FIELDS), **self._said(given), "offset": self._store.next_offset + number}
                if fields["timestamp"] is None and fields["magic"] != 0:
                    fields["timestamp"] = now
                cells.append(self._cell(Message(**fields), self.layout, now))
            return self._store.write(self._frames(cells))

    def _said(self, given: Message | Mapping[str, Any] | ProducerRecord[Any, Any]) -> Mapping[str, Any]:
        """Give the fields of a message that was handed in."""
        if isinstance(given, ProducerRecord):
            if (given.topic, given.layout) != (self.topic, self.layout) or given.partition not in (
                None,
                self.partition,
            ):
                raise ValueError(
                    f"this log is {self.topic}-{self.partition} in the layout {self.layout}: a record is for topic "
                    f"{given.topic}, partition {given.partition}, in the layout {given.layout}"
                )
            given = given.to_message()
        return given._asdict() if isinstance(given, Message) else given

    def flush(self) -> None:
        """Make the disk have everything that was appended.

        Raises
        ------
        OSError
            If it does not. The log is closed then: what is on disk is only known by opening it again.
        """
        with self._store.guard:
            self._store.check_open(writing=True)
            self._store.flush()

    def produce(self, request: ProduceRequest) -> ProduceResponse:
        """Append what a request carries; partition by partition, each as a whole or not at all.

        Messages are converted to the magic that the log writes: older ones get no headers. Compressed sets are opened, and
        their messages written with the codec of the log.

        Parameters
        ----------
        request : ProduceRequest
            A request of any version. With ``acks=-1`` the messages are on disk when this returns.

        Returns
        -------
        ProduceResponse
            Of the same version. What could not be appended has an error code, and a reason beside it:
            :meth:`~ProduceResponse.raise_for_error` raises it.

        Raises
        ------
        LogClosedError, OSError
            As :meth:`append` does.
        """
        with self._store.guard:
            self._store.check_open(writing=True)
            topics = tuple(
                Topic(topic.topic, tuple(self._produce(request, topic.topic, sent) for sent in topic.partitions))
                for topic in request.topics
            )
            if request.acks == -1:
                self._store.flush()
            return ProduceResponse(version=request.version, topics=topics)

    def _produce(self, request: ProduceRequest, topic: str, sent: SentPartition) -> ProducedPartition:
        def refused(code: ErrorCode, reason: object) -> ProducedPartition:
            return ProducedPartition(sent.partition, code, -1, reason=str(reason))

        if (topic, sent.partition) != (self.topic, self.partition):
            return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this log is {self.topic}-{self.partition}")
        now = _now()
        came_in = layout_of(request.version, self.layout) or self.layout
        try:
            cells = []
            for number, message in enumerate(sent.messages(request.version, self.layout)):
                if message.magic == 2 and MAGIC[request.version] < 2:
                    reason = (
                        f"message {number} is of magic {message.magic}, which version {request.version} does not have"
                    )
                    return refused(ErrorCode.CORRUPT_MESSAGE, reason)
                cells.append(self._cell(message._replace(offset=self._store.next_offset + number), came_in, now))
        except DecodeError as error:
            return refused(ErrorCode.CORRUPT_MESSAGE, error)
        except (ConversionError, EncodeError) as error:
            large = error.code == "too_large"
            return refused(ErrorCode.MESSAGE_TOO_LARGE if large else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, error)
        offsets = self._store.write(self._frames(cells))
        return ProducedPartition(sent.partition, ErrorCode.NONE, offsets.start, now if self._log_append_time else -1)

    def _cell(self, message: Message, layout: Layout, now: int) -> bytes:
        """Write one message for the log, not compressed; a message of an older magic gets no headers."""
        old = message.magic is not None and message.magic < 2
        layout = self.layout if old else layout
        message = convert_up(message, layout)
        attributes = (message.attributes or 0) & ~LOG_APPEND_BIT
        if self._log_append_time:
            message = message._replace(timestamp=now, attributes=attributes | LOG_APPEND_BIT)
        else:
            message = message._replace(attributes=attributes)
        if self.message_format_version == 2:
            cell = carry(message, layout, self.layout, **self._crossing_in)
        else:
            cell = self._older_cell(message)
        if len(cell) > self._max_message_bytes:
            raise EncodeError(
                f"the message has {len(cell)} bytes, and the log takes {self._max_message_bytes} (max_message_bytes)",
                format=MESSAGES[self.layout],
                code="too_large",
            )
        return cell

    def _older_cell(self, message: Message) -> bytes:
        """Write a message of magic 0 or 1, which have no headers, and no value in a delete."""
        magic = self.message_format_version
        older = convert_down(message, magic)
        if self._crossing_in["on_loss"] == "raise" and (message.headers or older.value != message.value):
            lost = "headers" if message.headers else "value of a delete"
            raise ConversionError(
                f"magic {magic} has no {lost}: open the log with message_format_version=2, or with on_loss='drop'",
                format=MESSAGES[self.layout],
                code="field_not_carried",
            )
        return write_message(older, self.layout)

    def _frames(self, cells: list[bytes]) -> list[bytes]:
        """Compress messages into sets, if the log has a codec, none of more than ``max_message_bytes`` of content."""
        if not self._codec:
            return cells
        sets: list[list[bytes]] = []
        size = 0
        for cell in cells:
            size += len(cell)
            if not sets or size > self._max_message_bytes:
                sets.append([])
                size = len(cell)
            sets[-1].append(cell)
        attributes = self._codec | (LOG_APPEND_BIT if self._log_append_time else 0)
        return [pack(b"".join(each), self.layout, attributes) for each in sets]

    # Reading ------------------------------------------------------------------------------------------------------

    def scan(self, start: int = 0, *, on_damage: Callable[[Damage], object] | None = None) -> Iterator[Message]:
        """Read messages, up to the last one there was when reading began.

        Parameters
        ----------
        start : int, default 0
            Offset of the first message that is wanted. Where compaction took it, the next one is the first.
        on_damage : callable, optional
            What is told of bytes that are no message, a :class:`Damage` each; then reading goes on with the next whole
            message. ``found.append`` collects them. By default the first is raised.

        Yields
        ------
        Message
            The messages, with the fields of ``kip82-message*``.

        Raises
        ------
        DamagedLogError
            If bytes are no message and ``on_damage`` is not given, after the messages before them.
        LogClosedError
            If the log is closed.
        """
        for stored in self._store.read(start, on_damage):
            for message in stored.messages:
                if message.offset >= start:
                    yield message

    def verify(self) -> list[Damage]:
        """Read everything, and say what is damaged.

        Returns
        -------
        list of Damage
            Empty where the log is whole.
        """
        found: list[Damage] = []
        for _ in self._store.read(0, found.append):
            pass
        return found

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Give messages as a request wants them.

        Messages that the version cannot have are converted down, and their headers dropped; older ones are given as they
        are stored. Sets hold whole messages, and one at least where there is one, whatever ``max_bytes`` is; nothing is
        waited for. A compressed set is given as a whole, as Kafka does: it may begin before the offset that was asked for.

        Parameters
        ----------
        request : FetchRequest
            A request of any version.

        Returns
        -------
        FetchResponse
            Of the same version. What could not be given has an error code, and a reason beside it:
            :meth:`FetchResponse.messages` raises it.

        Raises
        ------
        LogClosedError
            If the log is closed.
        """
        self._store.check_open()
        topics = tuple(
            Topic(topic.topic, tuple(self._fetch(request.version, topic.topic, asked) for asked in topic.partitions))
            for topic in request.topics
        )
        return FetchResponse(version=request.version, topics=topics)

    def _fetch(self, version: int, topic: str, asked: AskedPartition) -> FetchedPartition:
        def refused(code: ErrorCode, reason: object, end: int = -1) -> FetchedPartition:
            return FetchedPartition(asked.partition, code, end, b"", reason=str(reason))

        if (topic, asked.partition) != (self.topic, self.partition):
            return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this log is {self.topic}-{self.partition}")
        end = self._store.next_offset
        if not 0 <= asked.offset <= end:
            return refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {asked.offset} is not in 0 to {end}", end)
        cells: list[bytes] = []
        size = 0
        try:
            for stored in self._store.read(asked.offset, None):
                cell = self._served(stored, version)
                if cells and size + len(cell) > asked.max_bytes:
                    break
                cells.append(cell)
                size += len(cell)
                if size >= asked.max_bytes:
                    break
        except (DamagedLogError, HeaderError) as error:
            # What stands before it is given; asked for what comes next, there is nothing else to say.
            if not cells:
                damaged = isinstance(error, DamagedLogError)
                code = ErrorCode.CORRUPT_MESSAGE if damaged else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
                return refused(code, error, end)
        return FetchedPartition(asked.partition, ErrorCode.NONE, end, b"".join(cells))

    def _served(self, stored: Stored, version: int) -> bytes:
        """Write a message or a compressed set of the log as a version has it."""
        target = layout_of(version, self.layout) or self.layout
        if stored.magic <= MAGIC[version] and (stored.magic < 2 or target == self.layout):
            return stored.data
        if MAGIC[version] < 2:
            cells = [write_message(convert_down(each, MAGIC[version]), target) for each in stored.messages]
        else:
            cells = [carry(each, self.layout, target, **self._crossing_out) for each in stored.messages]
        data = b"".join(cells)
        return pack(data, target, stored.attributes) if stored.attributes & CODEC_BITS else data

    # Compaction ---------------------------------------------------------------------------------------------------

    def compact(
        self, *, now: int | None = None, delete_retention_ms: int = DELETE_RETENTION_MS, keyless: Keyless = "keep"
    ) -> Compacted:
        """Keep the last message of every key, and deletes for their time.

        Offsets stay, and what is kept stays byte for byte; a compressed set that loses messages is compressed again. Files
        are replaced one by one, the oldest first: whatever
        moment a crash comes at, no message is back that a later one replaced.

        Parameters
        ----------
        now : int, optional
            Milliseconds since 1970; by default the time it is.
        delete_retention_ms : int, default 86,400,000
            How long a delete is kept, by its timestamp.
        keyless : {"keep", "drop"}, default "keep"
            What becomes of messages without a key.

        Returns
        -------
        Compacted
            What was done.

        Raises
        ------
        DamagedLogError
            If the log is damaged; nothing was changed then.
        LogClosedError, OSError
            As :meth:`append` does.
        """
        horizon = delete_horizon(now, delete_retention_ms)
        check_name("keyless value", keyless, ("keep", "drop"))
        with self._store.guard:
            self._store.check_open(writing=True)
            latest: dict[bytes, int] = {}
            for message in self.scan():
                if message.key is not None:
                    latest[message.key] = message.offset
            return self._store.keep(lambda message: should_retain(message, latest, horizon, keyless=keyless))

    def _check_crossing(self) -> None:
        """Refuse types that make no sense between the layouts, before a request meets them."""
        nothing = Message(**dict.fromkeys(("offset", *_FIELDS)))
        for version in VERSIONS:
            other = layout_of(version, self.layout) or self.layout
            if other != self.layout:
                carry(nothing, other, self.layout, **self._crossing_in)
                carry(nothing, self.layout, other, **self._crossing_out)


_FIELDS = ("crc", "magic", "attributes", "timestamp", "key", "headers", "value", "tombstone")


def _now() -> int:
    return time.time_ns() // 1_000_000
