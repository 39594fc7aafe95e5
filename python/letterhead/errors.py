"""All exceptions of this package, and the closed list of error codes.

An :class:`ErrorDetail` is one error of one message, as functions return it. An exception also has the format and the
row. Its text contains the reason, then the location::

    kafka: column amount_cents: 4 bytes where int64 takes 8 (header 9, byte 57, row 7)

No error message contains a user's values. Reasons precede locations, so that errors can be grouped by their text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from letterhead._formatting import printable

if TYPE_CHECKING:
    from letterhead._topic_partition import TopicPartition

__all__ = [
    "GroupNotFoundError",
    "CODES",
    "ConversionError",
    "Damage",
    "DamagedLogError",
    "DamagedRowError",
    "DamagedTableError",
    "DecodeError",
    "EncodeError",
    "ErrorDetail",
    "HeaderError",
    "InvalidStateStoreError",
    "InvalidTimestampError",
    "LetterheadError",
    "LogClosedError",
    "LogLockedError",
    "LogTruncated",
    "MessageLogError",
    "NoSuchElementError",
    "OffsetsGone",
    "PrefixError",
    "ProcessorStateError",
    "ProtocolError",
    "RequestError",
    "SerdeError",
    "StateStoreError",
    "StoreChoiceError",
    "StoreLockedError",
    "StoreNotFoundError",
    "TopicNotFoundError",
    "TopologyError",
    "TruncatedTailWarning",
    "UnseenHeaderWarning",
    "UnexpectedColumnFamilyError",
    "UnsupportedOperationError",
]


def __dir__() -> list[str]:
    return __all__


CODES: dict[str, str] = {
    "truncated": "the bytes end inside a field",
    "varint_too_long": "a varint goes on after its fifth byte",
    "varint_lost_bits": "the fifth byte of a varint carries bits that a 32-bit number cannot hold",
    "negative_length": "a length is negative and does not mean null",
    "negative_count": "the number of headers is negative",
    "count_too_large": "more headers are announced than the bytes could hold",
    "trailing_bytes": "bytes are left after the last header, or after a value",
    "key_not_utf8": "a key is not UTF-8",
    "value_not_utf8": "a value read as a string is not UTF-8",
    "null_key": "a header has no key",
    "empty_key": "a key has no bytes where the format requires at least one",
    "empty_value": "a value has no bytes where the format requires at least one",
    "too_long": "a key or value is longer than the format allows",
    "too_large": "the headers of a message, or a column, are larger than the format or Arrow can carry",
    "unknown_type": "a type code that the format does not define",
    "wrong_type": "a value has another type than the requested one",
    "wrong_size": "a value has another number of bytes than its type",
    "bad_bool": "a boolean is neither 0 nor 1",
    "bad_text": "a text is not a value of its type",
    "out_of_range": "a value does not fit the type it is read as",
    "bad_magic": "an unknown magic byte",
    "bad_crc": "a checksum does not match",
    "bad_attributes": "attribute bits that the format does not define",
    "unknown_codec": "a compression codec that the format does not define",
    "bad_compression": "compressed data cannot be read",
    "decompressed_too_large": "decompressed data would exceed the limit",
    "repeated_key": "a key occurs more than once where one value was requested",
    "type_not_carried": "the target has no types, and how to write the value was not specified",
    "null_not_carried": "the target has no way to write this null",
    "limit_exceeded": "a limit that can be raised is exceeded",
    "not_in_order": "keys or offsets that should be in order are not",
    "missing_key": "a required header is absent",
    "incomplete": "headers that were not read may replace the value of a column",
    "null_field": "a field of the message is null and the format has no null for it",
    "key_not_carried": "the target's keys are of another type",
    "field_not_carried": "the target does not have a field",
}
"""Every error code and its meaning. The list is closed."""


class LetterheadError(Exception):
    """The base class of all exceptions of this package.

    Unknown names raise a plain ``ValueError`` and wrong Python types a ``TypeError``: those are errors in the program, not
    in the data.
    """

    def __str__(self) -> str:
        # A traceback prints the text, and names of columns, files and stores may come from data.
        return "\n".join(map(printable, super().__str__().split("\n")))

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, pickling calls the class with `args`, which is only the text; Spark moves exceptions between
        # processes.
        cause = self.__cause__ if isinstance(self.__cause__, LetterheadError) else None
        return _rebuild, (type(self), self.args, cause), self.__dict__


class HeaderError(LetterheadError, ValueError):
    """Headers could not be read, written or converted.

    Parameters
    ----------
    message : str
        The error without its position; lower case, no full stop.
    format : str or None
        Name of the format; ``None`` for a value that is not in a format yet.
    code : str
        One of :data:`CODES`.
    byte_offset, row, header : int, optional
        Byte in the message, row in the column, and header in the message, each counted from 0.
    key : str, optional
        Key of that header, if it could be read.
    column : str, optional
        Output column that could not be filled.
    topic : str, optional
        Topic of the record, if readers of topics and segments raise the error; of Iggy, stream and topic with a slash.
    partition, offset : int, optional
        Partition and offset of the record; of a damaged batch, the first offset that is missing.

    Attributes
    ----------
    message, format, code, byte_offset, row, header, key, column, topic, partition, offset
        The parameters; ``None`` if unknown.

    Examples
    --------
    >>> from letterhead.errors import DecodeError
    >>> error = DecodeError("key length -1 is negative", format="kafka", code="negative_length", header=3, byte_offset=41)
    >>> str(error), error.code, error.header
    ('kafka: key length -1 is negative (header 3, byte 41)', 'negative_length', 3)
    """

    message: str
    format: str | None
    code: str
    byte_offset: int | None
    row: int | None
    header: int | None
    key: str | None
    column: str | None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __init__(
        self,
        message: str,
        *,
        format: str | None,
        code: str,
        byte_offset: int | None = None,
        row: int | None = None,
        header: int | None = None,
        key: str | None = None,
        column: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        position: dict[str, object] = {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "header": header,
            "byte": byte_offset,
            "row": row,
        }
        super().__init__(_text(message, format, column, position))
        self.message, self.format, self.code = message, format, code
        self.byte_offset, self.row, self.header = byte_offset, row, header
        self.key, self.column = key, column
        if topic is not None or partition is not None or offset is not None:
            self.topic, self.partition, self.offset = topic, partition, offset


class DecodeError(HeaderError):
    """Bytes that are not valid in their format, or values that are not valid for their type.

    An error of one row among many has a note that names the option to read all other rows.
    """


class EncodeError(HeaderError):
    """Headers or values that cannot be written."""


class ConversionError(HeaderError):
    """Data that the target format cannot hold, unless the caller accepts losses."""


class UnseenHeaderWarning(UserWarning):
    """Warning that no message has a header that an edit should hide, a condition tests, or a column should contain.

    The key may be misspelt, or be written in another case: then the values that an edit should hide are still visible.
    """


class TruncatedTailWarning(UserWarning):
    """Warning that a log ends in an incomplete batch or message.

    A broker or a :class:`~letterhead.kip82.MessageLog` leaves such an end if it stops during a write. Everything before
    it was read. :func:`letterhead.read.segments` does not change the file; a ``MessageLog`` opened for writing truncates
    it.

    Examples
    --------
    >>> import warnings
    >>> from letterhead.errors import TruncatedTailWarning
    >>> with warnings.catch_warnings(action="error", category=TruncatedTailWarning):
    ...     pass  # an incomplete end raises when it is read here
    """


_Error = TypeVar("_Error", bound=HeaderError)


class ErrorDetail(NamedTuple):
    """One error of one message; its fields are the fields of the ``error`` column in Arrow and Spark.

    Attributes
    ----------
    code : str
        One of :data:`CODES`.
    message : str
        The error without its position; lower case, no full stop.
    byte_offset, header : int or None
        Byte in the message, and header in the message, each counted from 0.
    key : str or None
        Key of that header, if it could be read.
    column : str or None
        Output column that could not be filled.
    """

    code: str
    message: str
    byte_offset: int | None = None
    header: int | None = None
    key: str | None = None
    column: str | None = None


def as_error(detail: ErrorDetail, error: type[_Error], format: str, *, row: int | None = None) -> _Error:
    """Return an error of a message as an exception.

    Parameters
    ----------
    detail : ErrorDetail
        The error.
    error : type of HeaderError
        Class of the exception.
    format : str
        Name of the format.
    row : int, optional
        Row in the column, counted from 0.

    Examples
    --------
    >>> from letterhead.errors import DecodeError, ErrorDetail, as_error
    >>> str(as_error(ErrorDetail("truncated", "the bytes end inside the count", byte_offset=0), DecodeError, "kafka"))
    'kafka: the bytes end inside the count (byte 0)'
    """
    return error(
        detail.message,
        format=format,
        code=detail.code,
        byte_offset=detail.byte_offset,
        row=row,
        header=detail.header,
        key=detail.key,
        column=detail.column,
    )


class DamagedTableError(LetterheadError, ValueError):
    """A file of Parquet, Arrow IPC or JSON lines cannot be read to its end."""


class RequestError(LetterheadError, RuntimeError):
    """A response contains an error for a partition.

    Parameters
    ----------
    message : str
        The error and the partition.
    error_code : int
        Error code of the protocol, see ``letterhead.kip82.requests.ErrorCode``.
    """

    def __init__(self, message: str, error_code: int) -> None:
        super().__init__(message)
        self.error_code = error_code


class ProtocolError(LetterheadError, RuntimeError):
    """A server sent a reply that violates its protocol, or that belongs to another request.

    The text names the server. Check that the address belongs to a server of this type, and that nothing between it and
    this program changes its replies.
    """


class MessageLogError(LetterheadError, RuntimeError):
    """An operation of a :class:`~letterhead.kip82.MessageLog` failed. The base class of all errors of logs."""


class LogClosedError(MessageLogError):
    """A log was used after it was closed, after a write failed, or in a process that did not open it."""


class LogLockedError(MessageLogError):
    """The files of a log are being written by another process, or by another object of this one."""


class Damage(NamedTuple):
    """Bytes of a segment that are not a message.

    Attributes
    ----------
    file : str
        Path of the segment.
    position : int
        First of the bytes, counted from 0.
    end : int
        The byte after the damage: the start of the next message, or the end of the file.
    offset : int
        The first missing offset.
    reason : str
        The error, without its position.
    code : str
        One of :data:`letterhead.errors.CODES`.
    """

    file: str
    position: int
    end: int
    offset: int
    reason: str
    code: str

    def __str__(self) -> str:
        where = f"bytes {self.position} to {self.end}" if self.end > self.position else f"byte {self.position}"
        return f"{self.file}: {where}: offset {self.offset}: {self.reason}"


class DamagedLogError(MessageLogError):
    """A segment contains bytes that are not a message.

    Parameters
    ----------
    damage : Damage
        The bytes and the error; also an attribute.
    hint : str, optional
        The remedy.

    Examples
    --------
    >>> reason = "the checksum is ddb85f03 and the bytes give 3a007204"
    >>> str(DamagedLogError(Damage("orders-0/00000000000000000000.log", 68, 136, 1, reason, "bad_crc")))
    'orders-0/00000000000000000000.log: bytes 68 to 136: offset 1: the checksum is ddb85f03 and the bytes give 3a007204'
    """

    def __init__(self, damage: Damage, hint: str = "") -> None:
        super().__init__(f"{damage}: {hint}" if hint else str(damage))
        self.damage = damage


class OffsetsGone(LetterheadError, RuntimeError):
    """Records to be read are no longer in the topic.

    Attributes
    ----------
    topic_partition : letterhead.offsets.partition_log.TopicPartition
        Topic and partition.
    topic, partition : str and int
        The same; the topic of Iggy is stream and topic with a slash.
    offset : int
        The requested offset.
    reason : str
        Why the offset cannot be read.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(f"{topic_partition}: offset {offset} cannot be read: {reason}")
        self.topic_partition = topic_partition
        self.topic = str(topic_partition.topic)
        self.partition = topic_partition.partition
        self.offset = offset
        self.reason = reason


class LogTruncated(OffsetsGone):
    """Records that were already read were removed from the log, and their offsets may be reused.

    Kafka removes acknowledged records if it elects a leader that lacks them: an unclean election.

    Parameters
    ----------
    topic_partition : letterhead.offsets.partition_log.TopicPartition
        Topic and partition.
    offset : int
        The requested offset.
    truncated_to : int
        The first offset whose record was removed; also an attribute.

    Examples
    --------
    >>> from letterhead.errors import LogTruncated
    >>> from letterhead.offsets.partition_log import TopicPartition
    >>> LogTruncated(TopicPartition("orders", 0), 41, 20).truncated_to
    20
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, truncated_to: int) -> None:
        super().__init__(
            topic_partition,
            offset,
            f"an unclean leader election removed the records from {truncated_to} to {offset - 1} after they were read: "
            f"discard these rows, and read the partition again from {truncated_to}",
        )
        self.truncated_to = truncated_to


class StateStoreError(LetterheadError, RuntimeError):
    """An operation of a store failed. The base class of all errors of stores."""


class InvalidStateStoreError(StateStoreError):
    """A store or an iterator was used before it was opened or after it was closed."""


class NoSuchElementError(StateStoreError, LookupError):
    """The key of the next row was requested from an iterator that has no further row."""


class PrefixError(StateStoreError, IndexError):
    """A prefix cannot be used as an upper bound, because no key is greater than it."""


class UnsupportedOperationError(StateStoreError, NotImplementedError):
    """A store of this type does not have the operation."""


class SerdeError(StateStoreError, TypeError):
    """A serializer received a value that it cannot write."""


class InvalidTimestampError(StateStoreError, ValueError):
    """A record cannot have this timestamp."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or null.")
        self.timestamp = timestamp


class TopologyError(StateStoreError, ValueError):
    """A topology is inconsistent."""


class ProcessorStateError(StateStoreError):
    """The files of a store could not be opened, read or written."""


class UnexpectedColumnFamilyError(ProcessorStateError):
    """A database contains data of a store of another type, usually a newer one.

    Parameters
    ----------
    message : str
        The error.
    store, family : str
        Names of the store (or segment) and of the column family.
    """

    def __init__(self, message: str, store: str, family: str) -> None:
        super().__init__(message)
        self.store = store
        self.family = family


class StoreLockedError(ProcessorStateError):
    """The files of a store are in use by another process, or by another store of this one."""


class StoreNotFoundError(ProcessorStateError):
    """The store to read does not exist."""


class TopicNotFoundError(LetterheadError, ValueError):
    """The topic to read does not exist, or the user may not see it."""


class GroupNotFoundError(LetterheadError, ValueError):
    """The consumer group does not exist, or has no offsets of the topic to read."""


class DamagedRowError(StateStoreError):
    """A row contains bytes that are not valid in the store's format.

    Parameters
    ----------
    store : str
        Name of the store; also an attribute.
    key : bytes
        Key of the row, as stored; also an attribute. Keys of windows and sessions end in their times, as in a changelog.
    error : HeaderError
        The error and its position in the value.

    Attributes
    ----------
    code : str
        One of :data:`letterhead.errors.CODES`.
    byte_offset : int or None
        Byte in the value, counted from 0.
    reason : str
        The error, without its position.

    Examples
    --------
    >>> from letterhead.errors import DecodeError
    >>> error = DecodeError("key length -1 is negative", format="kafka", code="negative_length", byte_offset=2)
    >>> str(DamagedRowError("latest", b"acme", error))
    'store latest: key length -1 is negative (key 61636d65, byte 2)'
    """

    def __init__(self, store: str, key: bytes, error: HeaderError) -> None:
        position = {"key": _format_key(key), "header": error.header, "byte": error.byte_offset}
        super().__init__(_text(error.message, f"store {store}", error.column, position))
        self.store = store
        self.key = key
        self.code = error.code
        self.byte_offset = error.byte_offset
        self.reason = error.message
        self.__cause__ = error


def _format_key(key: bytes) -> str:
    # The key identifies the row. Only the first bytes of a long key are shown.
    return key.hex() if len(key) <= 32 else f"{key[:32].hex()}… ({len(key)} bytes)"


def forked_store_error(name: str) -> InvalidStateStoreError:
    """Return the error for a store of a parent process."""
    return InvalidStateStoreError(
        f"Store {name} was opened before this process was forked: open it in a process started by spawn or forkserver"
    )


class StoreChoiceError(StateStoreError, ValueError):
    """The options of a reader do not match the stores in a directory, or match several."""


def copy_error(error: _Error, message: str | None = None, **position: Any) -> _Error:
    """Return a copy of an error with another message or position, such as the row in a stream instead of the row in a batch."""
    text = error.message if message is None else message
    copy = type(error)(text, **{name: getattr(error, name) for name in _POSITION} | position)
    for note in getattr(error, "__notes__", ()):
        copy.add_note(note)
    return copy


def after_rows(error: _Error, rows: int) -> _Error:
    """Return an error whose row number is increased by the number of preceding rows."""
    return error if error.row is None or not rows else copy_error(error, row=error.row + rows)


def without_message_number(message: str) -> str:
    """Return the text of an error without the message number, because that depends on how much is read at a time."""
    return _MESSAGE_NUMBER.sub("", message)


_MESSAGE_NUMBER = re.compile(r"^message \d+: ")


def _text(message: str, where: str | None, column: str | None, position: Mapping[str, object]) -> str:
    # Positions come last, so that errors with the same reason can be grouped by their text.
    text = ": ".join(
        part for part in (where, None if column is None else f"column {column}", message) if part is not None
    )
    known = [f"{name} {value}" for name, value in position.items() if value is not None]
    return text + (f" ({', '.join(known)})" if known else "")


_POSITION = ("format", "code", "byte_offset", "row", "header", "key", "column", "topic", "partition", "offset")


def _rebuild(cls: type[LetterheadError], args: tuple[Any, ...], cause: LetterheadError | None) -> LetterheadError:
    error = cls.__new__(cls, *args)
    error.__cause__ = cause
    return error
