"""Where a store has its rows: column families, and what older stores have where.

Every database has the families ``default``, which RocksDB insists on, and ``offsets``. The rows of the plain stores are
in ``default``; newer kinds of rows have families of their own, so that an older store cannot mistake them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from letterhead.errors import ProcessorStateError, UnexpectedColumnFamilyError
from letterhead.storage.raw import NO_TIMESTAMP
from letterhead.storage.versioned_rows import with_headers

__all__ = ["HEADERS", "PLAIN", "SESSION_HEADERS", "TIMESTAMPED", "TIME_ORDERED_HEADERS", "VERSIONED_HEADERS", "Layout"]

Convert: TypeAlias = Callable[[bytes, bytes], bytes]
"""Makes a value in the newer form of a key and its value in the older one."""

DEFAULT = "default"
OFFSETS = "offsets"
WITH_TIMESTAMP = "keyValueWithTimestamp"
WITH_HEADERS = "keyValueWithTimestampAndHeaders"


class Legacy(NamedTuple):
    """A family with the rows of an older store.

    Attributes
    ----------
    family : str
        Name of the family.
    convert : callable
        Makes a value in the newer form.
    dropped : bool
        Whether the family is opened only if it is there, and dropped when it is empty.
    """

    family: str
    convert: Convert
    dropped: bool = False


class Layout(NamedTuple):
    """The families of a kind of store.

    Attributes
    ----------
    family : str
        Where the rows are.
    legacy : tuple of Legacy
        Where the rows of older stores are, that are moved when they are touched; the oldest last.
    """

    family: str
    legacy: tuple[Legacy, ...] = ()

    @property
    def families(self) -> list[str]:
        """All families of the store, but those that are opened only if they are there."""
        return list(dict.fromkeys([DEFAULT, self.family, OFFSETS]))

    def check(self, store: str, found: list[str]) -> list[str]:
        """Refuse the families of another kind of store.

        Parameters
        ----------
        store : str
            Name of the store, or of the segment.
        found : list of str
            Names of the families that are there.

        Returns
        -------
        list of str
            Names of the families to open.

        Raises
        ------
        UnexpectedColumnFamilyError
            If there is another.
        """
        expected = [*self.families, *(legacy.family for legacy in self.legacy if legacy.family in found)]
        for family in found:
            if family not in expected:
                raise UnexpectedColumnFamilyError(self._refusal(store, family), store, family)
        return list(dict.fromkeys(expected))

    def _refusal(self, store: str, family: str) -> str:
        if family == WITH_TIMESTAMP:
            return (
                f"Store {store} is a timestamped key-value store and cannot be opened as a regular key-value store. "
                "Downgrade from timestamped to regular store is not supported directly. To downgrade, you can delete the "
                "local state in the state directory, and rebuild the store as regular key-value store from the changelog."
            )
        if family == WITH_HEADERS and self.family == WITH_TIMESTAMP:
            return (
                f"Store {store} is a headers-aware store and cannot be opened as a timestamped store. Downgrade from "
                "headers-aware to timestamped store is not supported. To downgrade, you can delete the local state in the "
                "state directory, and rebuild the store as timestamped store from the changelog."
            )
        if family == WITH_HEADERS:
            return (
                f"Store {store} is a headers-aware store and cannot be opened as a regular key-value store. Downgrade "
                "from headers-aware to regular store is not supported."
            )
        return (
            f"Unexpected column family '{family}' found in store {store}. The store may have been created with "
            "incompatible settings."
        )


def mixed_formats(store: str) -> ProcessorStateError:
    """Make the error for a database with the families of two older kinds of store, and plain rows."""
    return ProcessorStateError(
        f"Inconsistent store state for {store}. Cannot have both plain (DEFAULT) and timestamped data simultaneously. "
        "Headers store can upgrade from either plain or timestamped format, but not both."
    )


def _add_timestamp(key: bytes, value: bytes) -> bytes:
    return NO_TIMESTAMP + value


def _add_headers(key: bytes, value: bytes) -> bytes:
    return b"\0" + value


def _add_headers_and_timestamp(key: bytes, value: bytes) -> bytes:
    return b"\0" + NO_TIMESTAMP + value


PLAIN = Layout(DEFAULT)
"""Plain rows of any store, and the rows of time-ordered stores without headers."""

TIMESTAMPED = Layout(WITH_TIMESTAMP, (Legacy(DEFAULT, _add_timestamp),))
"""Key-value and window stores with timestamps."""

HEADERS = Layout(
    WITH_HEADERS, (Legacy(WITH_TIMESTAMP, _add_headers, dropped=True), Legacy(DEFAULT, _add_headers_and_timestamp))
)
"""Key-value and window stores with timestamps and headers."""

SESSION_HEADERS = Layout("sessionKeyValueWithHeaders", (Legacy(DEFAULT, _add_headers),))
"""Session stores with headers."""

TIME_ORDERED_HEADERS = Layout("windowKeyValueWithHeaders", (Legacy(DEFAULT, _add_headers),))
"""Time-ordered window stores with headers; the older rows have timestamps."""

VERSIONED_HEADERS = Layout("versionedKeyValueWithHeaders", (Legacy(DEFAULT, with_headers),))
"""Versioned stores with headers, which Kafka Streams does not have."""
