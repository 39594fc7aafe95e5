"""What can go wrong with a store: exceptions, where Kafka Streams has them with its very words."""

from __future__ import annotations

from letterhead.errors import HeaderError

__all__ = [
    "DamagedRowError",
    "InvalidStateStoreError",
    "InvalidTimestampError",
    "NoSuchElementError",
    "PrefixError",
    "ProcessorStateError",
    "SerdeError",
    "StateStoreError",
    "StoreLockedError",
    "StoreNotFoundError",
    "TopologyError",
    "UnexpectedColumnFamilyError",
    "UnsupportedOperationError",
]


class StateStoreError(RuntimeError):
    """Something that a store could not do. Catch this to catch them all."""


class InvalidStateStoreError(StateStoreError):
    """A store or an iterator was used before it was opened, or after it was closed."""


class NoSuchElementError(StateStoreError, LookupError):
    """An iterator was asked for the key of the next row, and there is none."""


class PrefixError(StateStoreError, IndexError):
    """A prefix after which no key can come, so that it is no bound."""


class UnsupportedOperationError(StateStoreError, NotImplementedError):
    """A store of this kind does not have the operation."""


class SerdeError(StateStoreError, TypeError):
    """A serializer was given what it cannot write."""


class InvalidTimestampError(StateStoreError, ValueError):
    """A record cannot have this timestamp.

    Parameters
    ----------
    timestamp : int
        The timestamp.
    """

    def __init__(self, timestamp: int) -> None:
        super().__init__(f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or null.")
        self.timestamp = timestamp

    def __reduce__(self) -> tuple[type[InvalidTimestampError], tuple[int]]:
        return type(self), (self.timestamp,)


class TopologyError(StateStoreError, ValueError):
    """A topology does not fit together."""


class ProcessorStateError(StateStoreError):
    """The files of a store could not be opened, read or written."""


class UnexpectedColumnFamilyError(ProcessorStateError):
    """A database holds data of a store of another kind: a newer one, as a rule.

    Parameters
    ----------
    message : str
        What is wrong.
    store : str
        Name of the store, or of the segment.
    family : str
        Name of the column family.
    """

    def __init__(self, message: str, store: str, family: str) -> None:
        super().__init__(message)
        self.store = store
        self.family = family

    def __reduce__(self) -> tuple[type[UnexpectedColumnFamilyError], tuple[str, str, str]]:
        return type(self), (str(self), self.store, self.family)


class StoreLockedError(ProcessorStateError):
    """The files of a store are in use by another process, or by another store of this one."""


class StoreNotFoundError(ProcessorStateError):
    """There is no store where one was to be read."""


class DamagedRowError(StateStoreError):
    """A row holds bytes that are not what the store's format says.

    Parameters
    ----------
    store : str
        Name of the store.
    key : bytes
        Key of the row, as it is stored: that of a window or a session has its times at the end, as in a changelog.
    error : HeaderError
        What is wrong, and where in the value.

    Attributes
    ----------
    store, key
        As given.
    code : str
        One of :data:`letterhead.errors.CODES`.
    offset : int or None
        Byte in the value, counted from 0.
    reason : str
        What is wrong, without the place.

    Examples
    --------
    >>> from letterhead.errors import DecodeError
    >>> error = DecodeError("key length -1 is negative", format="kafka", code="negative_length", offset=2)
    >>> str(DamagedRowError("latest", b"acme", error))
    'store latest: key 61636d65: key length -1 is negative (byte 2)'
    """

    def __init__(self, store: str, key: bytes, error: HeaderError) -> None:
        where = "" if error.offset is None else f" (byte {error.offset})"
        super().__init__(f"store {store}: key {_shown(key)}: {error.message}{where}")
        self.store = store
        self.key = key
        self.code = error.code
        self.offset = error.offset
        self.reason = error.message
        self._error = error
        self.__cause__ = error

    def __reduce__(self) -> tuple[type[DamagedRowError], tuple[str, bytes, HeaderError]]:
        return type(self), (self.store, self.key, self._error)


def _shown(key: bytes) -> str:
    # A key is shown because the row cannot be found without it; a long one by its first bytes only.
    return key.hex() if len(key) <= 32 else f"{key[:32].hex()}… ({len(key)} bytes)"


def of_parent(name: str) -> InvalidStateStoreError:
    """Make the error for a store of a parent process."""
    return InvalidStateStoreError(
        f"Store {name} was opened before this process was forked: open it in one that spawn or forkserver starts"
    )
